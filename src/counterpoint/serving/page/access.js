/**
 * The key that a server may ask for.
 *
 * Owns: whether one is needed, the one that was given, for as long as the tab lives.
 * Does not own: the field that it is typed into (`main.js`), how a socket carries it (`conversation.js`).
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

/** Whether the server refuses us without another key than we have. */
export async function isKeyNeeded() {
  const headers = key() ? { Authorization: `Bearer ${key()}` } : {};
  try {
    return (await fetch("/v1/models", { headers })).status === UNAUTHORIZED;
  } catch {
    return false; // the server is away: the session will say so, and try again
  }
}
