/**
 * What was said and is not yet known to have arrived.
 *
 * Owns: the numbers of client events, what waits and in which order, the bound on speech that waits.
 * Does not own: the socket (`protocol.js`), what is said.
 * Here because: nothing that was spoken may be lost or doubled over a reconnect (wire contract, section 2).
 *
 * An event gets its number when it is handed to a socket, so that speech which is dropped while it waits leaves
 * no hole. What the server did not apply may be numbered anew: the server knows only the numbers it applied.
 */

/** Speech that waits through an outage: with more than this an answer would come to something long past. */
export const MAX_WAITING_MS = 2000;

/** Speech that was sent and is kept for a resume: the longest turn, of which a server with a store acknowledges
 * nothing before its end. Without one it acknowledges every second. */
export const MAX_UNACKNOWLEDGED_MS = 300000;

export class Outbox {
  #waiting = []; // {event, ms}: not numbered
  #sent = []; // {event, ms, number}: not acknowledged
  #next = 1;
  #onDropped;

  /** `onDropped(ms)` is told of speech that will never arrive. */
  constructor(onDropped = () => {}) {
    this.#onDropped = onDropped;
  }

  /** Whether anything that was sent is not acknowledged. */
  get awaits() {
    return this.#sent.length > 0;
  }

  /** Speech that is not known to have arrived, in milliseconds. */
  get speechMs() {
    return lengthOf(this.#sent) + lengthOf(this.#waiting);
  }

  /** `ms` is the length of speech in `event`; only speech is ever dropped. */
  put(event, ms = 0) {
    this.#waiting.push({ event, ms });
    const droppedMs = trim(this.#waiting, MAX_WAITING_MS);
    if (droppedMs) this.#onDropped(droppedMs);
  }

  /** The next event with its number, or null. */
  take() {
    const entry = this.#waiting.shift();
    if (entry === undefined) return null;
    const number = this.#next;
    this.#next += 1;
    this.#sent.push({ ...entry, number });
    trim(this.#sent, MAX_UNACKNOWLEDGED_MS);
    return { ...entry.event, client_event_seq: number };
  }

  /** The server has everything up to `number`. */
  acknowledge(number) {
    while (this.#sent.length && this.#sent[0].number <= number) this.#sent.shift();
  }

  /** The server applied everything before `expected` and nothing from there on. */
  rewind(expected) {
    this.acknowledge(expected - 1);
    const again = this.#sent.map(({ event, ms }) => ({ event, ms }));
    this.#waiting.unshift(...again);
    this.#sent = [];
    this.#next = expected;
  }
}

const lengthOf = (entries) => entries.reduce((sum, { ms }) => sum + ms, 0);

/** Drop the oldest speech beyond `maxMs`; returns how much that was. */
function trim(entries, maxMs) {
  let heldMs = lengthOf(entries);
  let droppedMs = 0;
  while (heldMs > maxMs) {
    const oldest = entries.findIndex(({ ms }) => ms > 0);
    const [{ ms }] = entries.splice(oldest, 1);
    heldMs -= ms;
    droppedMs += ms;
  }
  return droppedMs;
}
