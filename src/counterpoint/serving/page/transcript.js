/**
 * What was said, by whom, and how much of it was heard.
 *
 * Owns: the entries and their order; which characters of an answer were heard.
 * Does not own: how it looks (`transcript-view.js`), playback (`player.js`).
 * Here because: an interrupted answer must show what the history holds: what was heard, and no word more.
 */

/** Entries that are kept: the older ones leave the page. */
const MAX_ENTRIES = 200;

/** What is known of a user's words. */
export const Words = Object.freeze({ LISTENING: "listening", AWAITED: "awaited", KNOWN: "known", FAILED: "failed" });

export class Transcript {
  #entries = new Map();
  #onChange;
  #onRemove;

  /** `onChange(entry)` for a new or changed entry, `onRemove(id)`. */
  constructor({ onChange, onRemove }) {
    this.#onChange = onChange;
    this.#onRemove = onRemove;
  }

  get entries() {
    return [...this.#entries.values()];
  }

  /** Entries of a page that was reloaded. */
  restore(entries) {
    entries.forEach((entry) => this.#put(entry));
  }

  /** The user typed something; `id` will be its item's. */
  typed(id, text) {
    this.#put({ ...userEntry(id), text, words: Words.KNOWN });
  }

  /** Of an answer's item, so much was played. */
  played({ itemId, playedMs, isOver }) {
    this.#change(itemId, () => ({ heardMs: playedMs, isOver }));
  }

  handle(event) {
    switch (event.type) {
      case "input_audio_buffer.speech_started":
        this.#forgetUnfinished();
        this.#put({ ...userEntry(event.item_id), words: Words.LISTENING });
        break;
      case "input_audio_buffer.cleared":
        this.#forgetUnfinished();
        break;
      case "input_audio_buffer.speech_stopped":
        this.#change(event.item_id, () => ({ words: Words.AWAITED }));
        break;
      case "conversation.item.input_audio_transcription.delta":
        this.#change(event.item_id, ({ text }) => ({ text: text + event.delta }));
        break;
      case "conversation.item.input_audio_transcription.completed":
        this.#change(event.item_id, () => ({ text: event.transcript, words: Words.KNOWN }));
        break;
      case "conversation.item.input_audio_transcription.failed":
        this.#change(event.item_id, () => ({ words: Words.FAILED }));
        break;
      case "conversation.item.added":
        this.#add(event.item);
        break;
      case "conversation.item.deleted":
        this.#remove(event.item_id);
        break;
      case "session.snapshot":
        this.entries.forEach(({ id }) => this.#remove(id));
        event.conversation.items.forEach((item) => this.#add(item));
        break;
      default:
        this.#handleAnswer(event);
    }
  }

  #handleAnswer(event) {
    switch (event.type) {
      case "response.output_audio_transcript.delta":
      case "response.output_text.delta":
        this.#change(event.item_id, ({ text }) => ({ text: text + event.delta, responseId: event.response_id }));
        break;
      case "response.output_audio_transcript.done":
        this.#change(event.item_id, () => ({ text: event.transcript }));
        break;
      case "response.output_audio.delta":
        this.#change(event.item_id, (entry) => spoken(entry, event));
        break;
      case "response.done":
        this.entries
          .filter(({ responseId }) => responseId === event.response.id)
          .forEach(({ id }) => this.#change(id, (entry) => ended(entry, event.response)));
        break;
      case "conversation.item.truncated":
        this.#change(event.item_id, () => ({ cutMs: event.audio_end_ms }));
        break;
      case "playback.acknowledged":
        this.#change(event.item_id, ({ cutMs }) => ({
          cutMs: cutMs === null ? null : Math.min(cutMs, event.playback.committed_ms),
        }));
        break;
    }
  }

  /** Speech that became no turn. */
  #forgetUnfinished() {
    this.entries.filter(({ words }) => words === Words.LISTENING).forEach(({ id }) => this.#remove(id));
  }

  #add(item) {
    if (item.type !== "message" || item.role === "system") return;
    const text = item.content.map((part) => part.text ?? part.transcript ?? "").join("");
    const known = this.#entries.get(item.id);
    if (item.role === "assistant") this.#put({ ...answerEntry(item.id), text });
    else if (!known) this.#put({ ...userEntry(item.id), text, words: text ? Words.KNOWN : Words.AWAITED });
  }

  #put(entry) {
    this.#entries.set(entry.id, entry);
    this.#onChange(entry);
    if (this.#entries.size > MAX_ENTRIES) this.#remove(this.#entries.keys().next().value);
  }

  #change(id, changes) {
    const entry = this.#entries.get(id);
    if (entry) this.#put({ ...entry, ...changes(entry) });
  }

  #remove(id) {
    if (this.#entries.delete(id)) this.#onRemove(id);
  }
}

const userEntry = (id) => ({ id, isUser: true, text: "", words: Words.AWAITED });

/**
 * `heardMs` is null while nothing says that the answer is spoken, `cutMs` is where it was interrupted.
 * `isDone`: its response is, `isOver`: its audio was played.
 */
const answerEntry = (id) => ({
  id,
  isUser: false,
  text: "",
  responseId: null,
  marks: [],
  spokenMs: 0,
  heardMs: null,
  cutMs: null,
  isOver: false,
  isDone: false,
  failure: null,
});

function spoken(entry, { duplex, response_id: responseId }) {
  const { audio_duration_ms: ms = 0, audio_text_marks: marks = [] } = duplex ?? {};
  return {
    responseId,
    heardMs: entry.heardMs ?? 0,
    spokenMs: entry.spokenMs + ms,
    marks: [...entry.marks, ...marks.map((mark) => [mark.audio_ms, mark.text_chars])],
  };
}

function ended(entry, { status, status_details: details }) {
  if (status === "cancelled" && entry.cutMs === null) return { isDone: true, cutMs: entry.heardMs ?? 0 };
  if (status === "failed") return { isDone: true, failure: details?.error?.code ?? "failed" };
  return { isDone: true };
}

/**
 * Characters of an answer that were heard: between two marks in proportion, after an interruption whole words.
 * An answer that is not spoken is read at once.
 */
export function heardChars({ text, marks, spokenMs, heardMs, cutMs, isOver }) {
  if (cutMs === null && (heardMs === null || isOver)) return text.length;
  const ms = Math.min(heardMs ?? 0, cutMs ?? Infinity);
  const chars = Math.min(text.length, charsAt(ms, marks, spokenMs, text.length));
  if (cutMs === null || chars === text.length || /\s/.test(text[chars])) return chars;
  return text.slice(0, chars).search(/\S*$/);
}

function charsAt(ms, marks, spokenMs, length) {
  const all = marks.length ? marks : [[spokenMs, length]];
  let [fromMs, fromChars] = [0, 0];
  for (const [toMs, toChars] of all) {
    if (ms < toMs) return Math.floor(fromChars + ((toChars - fromChars) * (ms - fromMs)) / (toMs - fromMs));
    [fromMs, fromChars] = [toMs, toChars];
  }
  return fromChars;
}
