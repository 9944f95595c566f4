/**
 * How long an answer takes: from the end of speech to its first audio.
 *
 * Owns: when the user fell silent, as the microphone heard it; the figures.
 * Does not own: turn detection (the server's), drawing (`lanes.js`).
 * Here because: it is measured where a person would measure it: at the microphone and the loudspeaker.
 */

/** Louder than this, and so many times louder than the room, is a voice. */
const QUIET = 0.01;
const ABOVE_ROOM = 4;
/** By so much a block the estimate of the room's noise rises when there is nothing quieter. */
const RISE = 1.005;

export class Latency {
  /** Milliseconds of each answer. */
  figures = [];

  #room = QUIET;
  #voiceAt = null; // when the microphone last heard a voice
  #endedAt = null; // when the turn that waits for its answer ended
  #sounding = null; // the response that sounded last

  /** The microphone heard a block of such loudness by `now`. */
  hear(level, now) {
    this.#room = Math.max(1e-5, Math.min(level, this.#room * RISE));
    if (level > Math.max(QUIET, this.#room * ABOVE_ROOM)) this.#voiceAt = now;
  }

  /** The server found that a turn began, or the user writes: no answer is waited for by ear. */
  turnStarted() {
    this.#endedAt = null;
  }

  /** The server found that a turn ended. */
  turnEnded(now) {
    this.#endedAt = this.#voiceAt ?? now;
  }

  /** Audio of a response sounds. Returns `{from, to}` if it is the first of the answer to a turn, else null. */
  sounded(responseId, now) {
    const isNew = responseId !== this.#sounding;
    this.#sounding = responseId;
    if (!isNew || this.#endedAt === null) return null;
    const span = { from: this.#endedAt, to: now };
    this.#endedAt = null;
    this.figures.push(span.to - span.from);
    return span;
  }

  get median() {
    const sorted = [...this.figures].sort((a, b) => a - b);
    return sorted.length ? sorted[sorted.length >> 1] : null;
  }
}
