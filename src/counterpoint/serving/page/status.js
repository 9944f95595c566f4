/**
 * What the page says about the connection, in words.
 *
 * Owns: the sentence for each state, each way in which a session ends, and each error that a person can act on.
 * Does not own: states (`protocol.js`), where sentences are shown (`main.js`).
 * Here because: a person who is told what happened knows what to do.
 */

import { State } from "./protocol.js";

const ENDINGS = {
  client_closed: null, // asked for
  model_closed: "The voice ended the conversation.",
  drained: "The server is shutting down and ended the conversation.",
  replaced: "This conversation goes on in another window or tab.",
  admin: "The server's operator ended the conversation.",
  failed: "The server failed and the conversation is over.",
  idle_ttl_expired: "Nothing was said for a long time, so the conversation ended.",
  disconnect_grace_expired: "The connection was gone for too long; the conversation is over.",
  max_duration: "The conversation reached its longest duration.",
  session_resume_expired: "The connection was gone for too long; the conversation is over.",
  invalid_resume_token: "The server no longer knows this conversation.",
  session_open_failed: "The voice could not be started.",
  model_not_found: "The server does not have this voice.",
};

const MICROPHONE = {
  NotAllowedError: "The microphone was refused. Allow it for this page in the browser's settings, or type.",
  NotFoundError: "No microphone was found. Plug one in, or type.",
  NotReadableError: "Another program holds the microphone. Close it, or type.",
};

const seconds = (ms) => `${Math.max(1, Math.round(ms / 1000))} s`;

/** `{tone, text}` of the status line; tones are idle, busy, good and bad. */
export function statusOf({ name, again, delayMs, reason }) {
  switch (name) {
    case State.CONNECTING:
      return { tone: "busy", text: again ? "Resuming" : "Connecting" };
    case State.OPEN:
      return { tone: "good", text: "Connected" };
    case State.WAITING:
      return reason === "resource_exhausted"
        ? { tone: "busy", text: `Server full, next try in ${seconds(delayMs)}` }
        : { tone: "busy", text: `Reconnecting in ${seconds(delayMs)}` };
    case State.LOST:
      return { tone: "bad", text: "No connection" };
    case State.ENDED:
      return { tone: "idle", text: "Ended" };
    default:
      return { tone: "idle", text: "Not connected" };
  }
}

/** `{text, action}` of what needs attention, `action` the name of a button that retries; null if nothing does. */
export function noticeOf({ name, reason, message }) {
  if (name === State.LOST && reason === "resource_exhausted")
    return { text: "The server has no free place.", action: "Try again" };
  if (name === State.LOST) return { text: "The server cannot be reached.", action: "Try again" };
  if (name !== State.ENDED) return null;
  const ending = reason in ENDINGS ? ENDINGS[reason] : (message ?? "The server ended the conversation.");
  return ending && { text: ending, action: null };
}

/** What the server announces: `session.queued`, `session.expiring`, `session.go_away`. */
export function warningOf({ type, position, in_ms: inMs, deadline_ms: deadlineMs }) {
  if (type === "session.queued") return `Waiting for a free place, number ${position} in the queue.`;
  if (type === "session.expiring") return `This conversation ends in ${seconds(inMs)}.`;
  return `The server shuts down; this conversation ends in ${seconds(deadlineMs)} at the latest.`;
}

/** Why there is no microphone; `error` is what `getUserMedia` raised. */
export const microphoneProblem = (error) =>
  MICROPHONE[error.name] ?? `The microphone cannot be used (${error.name}). You can type.`;

export const INSECURE =
  "Browsers allow voice on https:// and on this machine only. You can type, and read the answers.";
export const KEY_NEEDED = "This server asks for a key.";
export const MICROPHONE_LOST = "The microphone is gone. Plug it in and start again, or type.";
