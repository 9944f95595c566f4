/**
 * What outlives a reload of the tab.
 *
 * Owns: the form and the place of what is kept.
 * Does not own: when it is kept (`conversation.js`).
 * Here because: a reload is an outage like any other, of the page this time.
 *
 * The session storage of a tab is read by no other tab; it holds the resume token, which must go no further.
 */

const KEY = "counterpoint";

/** `{id, token, cursor, transcript, playback}`, or null. */
export function recall() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY));
  } catch {
    return null; // storage is forbidden, or holds what another version wrote
  }
}

export function keep(conversation) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(conversation));
  } catch {
    // forbidden or full: a reload then begins anew, and nothing else is lost
  }
}

export function forget() {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // forbidden: there is nothing to forget
  }
}
