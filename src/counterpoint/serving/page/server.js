/**
 * What the server says before there is a session.
 *
 * Owns: whether it wants a key, the key that was given, for as long as the tab lives; which voices it has.
 * Does not own: the field that the key is typed into (`main.js`), how a socket carries it (`conversation.js`).
 * Here because: a WebSocket that is refused for want of a key does not say so; an ordinary request does.
 */

const KEY = "counterpoint.key";
const UNAUTHORIZED = 401;

let given = null;

/** The key in use, or null. */
export function key() {
  try {
    return given ?? sessionStorage.getItem(KEY);
  } catch {
    return given; // storage is forbidden
  }
}

export function useKey(value) {
  given = value;
  try {
    sessionStorage.setItem(KEY, value);
  } catch {
    // storage is forbidden: the key is asked for again after a reload
  }
}

/** `{isKeyNeeded, voices}`: whether we are refused without another key, and the names of voices to choose from. */
export async function askServer() {
  const headers = key() ? { Authorization: `Bearer ${key()}` } : {};
  try {
    const answer = await fetch("/v1/models", { headers });
    const models = answer.ok ? (await answer.json()).data : [];
    return { isKeyNeeded: answer.status === UNAUTHORIZED, voices: models[0]?.voices ?? [] };
  } catch {
    return { isKeyNeeded: false, voices: [] }; // it is away: the session will say so, and try again
  }
}
