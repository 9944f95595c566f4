/**
 * Who spoke when, for as long as it can be seen.
 *
 * Owns: loudness in bins of time, spans of speech, marks.
 * Does not own: drawing (`lanes.js`).
 * Here because: what is remembered and how it looks change for different reasons.
 *
 * Times are milliseconds of `performance.now()`.
 */

/** One bar on the screen. */
export const BIN_MS = 80;
/** What leaves the widest window. */
const KEPT_MS = 40000;

export class Timeline {
  /** Bin number -> loudest level (0 to 1), of the user and of the voice. */
  levels = { user: new Map(), voice: new Map() };
  /** Speech of the user as the server found it, and outages: `{from, to, ...}`; `to` is null while it lasts. */
  speech = [];
  outages = [];
  /** From the end of speech to the answer: `{from, to}`. */
  answers = [];
  /** Moments at which an answer was interrupted. */
  interruptions = [];

  addLevel(isUser, level, now) {
    const bins = isUser ? this.levels.user : this.levels.voice;
    const bin = Math.floor(now / BIN_MS);
    bins.set(bin, Math.max(level, bins.get(bin) ?? 0));
  }

  beginSpeech(at) {
    endSpan(this.speech, at);
    this.speech.push({ from: at, to: null });
  }

  endSpeech(at) {
    endSpan(this.speech, at);
  }

  /** `isAsked`: the user cut the connection. */
  beginOutage(now, isAsked) {
    if (this.outages.at(-1)?.to !== null) this.outages.push({ from: now, to: null, isAsked });
  }

  endOutage(now) {
    endSpan(this.outages, now);
  }

  addAnswer(span) {
    this.answers.push(span);
  }

  addInterruption(now) {
    this.interruptions.push(now);
  }

  /** Loudness in a bin. */
  level(isUser, bin) {
    return (isUser ? this.levels.user : this.levels.voice).get(bin) ?? 0;
  }

  /** Whether the user's speech covers a moment. */
  isSpeech(at) {
    return this.speech.some(({ from, to }) => from <= at && (to === null || at < to));
  }

  clear() {
    this.levels.user.clear();
    this.levels.voice.clear();
    this.speech = [];
    this.outages = [];
    this.answers = [];
    this.interruptions = [];
  }

  /** Forget what nobody can see any more. */
  prune(now) {
    const oldest = now - KEPT_MS;
    for (const bins of Object.values(this.levels))
      for (const bin of bins.keys()) {
        if (bin * BIN_MS >= oldest) break;
        bins.delete(bin);
      }
    const isSeen = ({ to }) => to === null || to >= oldest;
    this.speech = this.speech.filter(isSeen);
    this.outages = this.outages.filter(isSeen);
    this.answers = this.answers.filter(isSeen);
    this.interruptions = this.interruptions.filter((at) => at >= oldest);
  }
}

function endSpan(spans, at) {
  const last = spans.at(-1);
  if (last && last.to === null) last.to = at;
}
