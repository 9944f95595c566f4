/**
 * The transcript on the page.
 *
 * Owns: the elements of each entry, scrolling, what a screen reader is told.
 * Does not own: what was said and heard (`transcript.js`).
 * Here because: words that were not heard must look it.
 */

import { heardChars, Words } from "./transcript.js";

/** Closer to the end than this, the page follows the conversation. */
const FOLLOW_PX = 80;

const NOTES = {
  [Words.LISTENING]: "speaking",
  [Words.AWAITED]: "",
  [Words.KNOWN]: "",
  [Words.FAILED]: "not understood",
};

export class TranscriptView {
  #list;
  #scroll;
  #announcer;
  #shown = new Map(); // id -> element
  #announced = new Set();
  #isFollowing = true;

  /** `list` holds the entries, `scroll` scrolls, `announcer` is a live region. */
  constructor({ list, scroll, announcer }) {
    this.#list = list;
    this.#scroll = scroll;
    this.#announcer = announcer;
    scroll.addEventListener("scroll", () => (this.#isFollowing = this.#isAtEnd()));
    new ResizeObserver(() => this.#follow()).observe(scroll);
  }

  show(entry) {
    let element = this.#shown.get(entry.id);
    if (!element) {
      element = make("li", `turn ${entry.isUser ? "you" : "voice"}`);
      this.#shown.set(entry.id, element);
      this.#list.append(element);
    }
    element.replaceChildren(...(entry.isUser ? userParts(entry) : answerParts(entry)));
    this.#follow();
    this.#announce(entry);
  }

  remove(id) {
    this.#shown.get(id)?.remove();
    this.#shown.delete(id);
    this.#announced.delete(id);
  }

  clear() {
    [...this.#shown.keys()].forEach((id) => this.remove(id));
  }

  #isAtEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroll;
    return scrollHeight - scrollTop - clientHeight < FOLLOW_PX;
  }

  /** Whoever scrolled back reads on undisturbed. */
  #follow() {
    if (this.#isFollowing) this.#scroll.scrollTop = this.#scroll.scrollHeight;
  }

  /** A screen reader hears of what is complete, once. */
  #announce({ id, isUser, text, words, isOver, isDone, cutMs, heardMs }) {
    const isRead = isOver || cutMs !== null || (isDone && heardMs === null);
    const isComplete = isUser ? words === Words.KNOWN : isRead;
    if (!isComplete || !text || this.#announced.has(id)) return;
    this.#announced.add(id);
    this.#announcer.textContent = `${isUser ? "You" : "Voice"}: ${text}`;
  }
}

function userParts({ text, words }) {
  const spoken = make("p", text || words === Words.FAILED || words === Words.KNOWN ? "" : "waiting", text);
  const note = words === Words.KNOWN && !text ? "no words" : NOTES[words];
  return [make("b", "hidden", "You: "), spoken, ...(note ? [make("small", "", note)] : [])];
}

function answerParts(entry) {
  const { text, cutMs, failure } = entry;
  const heard = heardChars(entry);
  const words = make("p", text || failure ? "" : "waiting", text.slice(0, heard));
  const rest = text.slice(heard);
  if (rest) words.append(cutMs === null ? make("span", "ahead", rest) : make("del", "", rest));
  const parts = [make("b", "hidden", "Voice: "), words];
  if (cutMs !== null) parts.push(make("small", "", `interrupted after ${(cutMs / 1000).toFixed(1)} s`));
  if (failure) parts.push(make("small", "bad", `no answer (${failure})`));
  return parts;
}

function make(name, className, text = "") {
  const element = document.createElement(name);
  if (className) element.className = className;
  element.textContent = text;
  return element;
}
