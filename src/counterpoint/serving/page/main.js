/**
 * The page: its controls, wired to one conversation at a time.
 *
 * Owns: buttons, keys, figures and notices; when the microphone and the loudspeaker are opened.
 * Does not own: the conversation (`conversation.js`), its words for states (`status.js`), drawing (`lanes.js`).
 * Here because: everything that touches the document's controls is found in one file.
 */

import { Conversation } from "./conversation.js";
import { Lanes } from "./lanes.js";
import { recall } from "./memory.js";
import { isSecureOrigin, Microphone, openAudio } from "./microphone.js";
import { State } from "./protocol.js";
import { askServer, key, useKey } from "./server.js";
import {
  INSECURE,
  KEY_NEEDED,
  MICROPHONE_LOST,
  microphoneProblem,
  noticeOf,
  statusOf,
  warningOf,
} from "./status.js";
import { Timeline } from "./timeline.js";
import { TranscriptView } from "./transcript-view.js";

/** How long "Cut the connection" keeps it cut: long enough to be seen. */
const CUT_MS = 1500;
/** Louder than this, a voice sounds. */
const SOUNDS = 0.004;
/** How long a passing notice stays. */
const NOTICE_MS = 8000;
/** Errors that the conversation handles by itself, or that its state tells. */
const HANDLED = new Set([
  "client_event_gap",
  "input_backpressure",
  "resource_exhausted",
  "response_cancel_not_active",
  "input_audio_buffer_commit_empty",
]);

const SESSION_URL = new URL("/v1/realtime", location.href.replace(/^http/, "ws")).href;

const element = (id) => document.getElementById(id);

class Page {
  /** The conversation that goes on, or the last one: to look at from the console. */
  conversation = null;

  #audio = null;
  #microphone = null;
  #isCutting = false;
  #isAsking = false; // for the microphone
  #beginning = null; // the promise of a conversation that is being opened
  #noticeTimer;
  #voices = []; // that the server has
  #timeline = new Timeline();
  #lanes = new Lanes(element("lanes"), this.#timeline);
  #transcript = new TranscriptView({
    list: element("turns"),
    scroll: element("scroll"),
    announcer: element("spoken"),
  });

  constructor() {
    element("talk").addEventListener("click", () => this.#talk());
    element("silence").addEventListener("click", () => this.conversation.interrupt());
    element("cut").addEventListener("click", () => this.#cut());
    element("end").addEventListener("click", () => this.conversation.close());
    element("composer").addEventListener("submit", (event) => this.#write(event));
    element("text").addEventListener("input", () => this.#showSend());
    element("voice").addEventListener("change", ({ target }) => this.#chooseVoice(target.value));
    element("notice-action").addEventListener("click", () => this.conversation.retry());
    element("key-form").addEventListener("submit", (event) => this.#useKey(event));
    document.addEventListener("keydown", (event) => this.#key(event));
    addEventListener("online", () => this.#state === State.WAITING && this.conversation.retry());
    if (!isSecureOrigin()) this.#notify(INSECURE);
  }

  /** Go on with the conversation that this tab had before it was loaded anew, if there is one. */
  async takeUp() {
    const earlier = recall();
    if (!earlier) return;
    this.#voices = (await askServer()).voices;
    await this.#open();
    this.conversation.takeUp(earlier);
    this.#showControls();
  }

  // ---------------------------------------------------------------- what the user does

  async #talk() {
    if (this.#microphone) {
      this.#microphone.mute(!this.#microphone.isMuted);
      this.#showControls();
      return;
    }
    if (this.#isAsking) return;
    this.#isAsking = true;
    if (await this.#begin()) await this.#listen();
    this.#isAsking = false;
  }

  async #write(event) {
    event.preventDefault();
    const text = element("text").value.trim();
    if (!text) return;
    if (!(await this.#begin())) return;
    element("text").value = "";
    this.#showSend();
    await this.conversation.write(text);
  }

  #askForKey() {
    this.#notify(KEY_NEEDED);
    element("key-form").hidden = false;
    element("key").focus();
  }

  #useKey(event) {
    event.preventDefault();
    useKey(element("key").value);
    this.#hideNotice();
    this.#talk();
  }

  #cut() {
    this.#isCutting = true;
    this.conversation.cut(CUT_MS);
    this.#isCutting = false;
  }

  #chooseVoice(voice) {
    this.conversation.update({ type: "realtime", audio: { output: { voice } } });
  }

  #key(event) {
    if (event.key === "Escape" && !element("silence").disabled) this.conversation.interrupt();
    const isFree = !event.target.closest("button, input, select, a");
    if (event.key === " " && isFree && !event.repeat) {
      event.preventDefault();
      this.#talk();
    }
  }

  // ---------------------------------------------------------------- beginning and ending

  get #state() {
    return this.conversation?.state.name ?? State.IDLE;
  }

  get #isLive() {
    return ![State.IDLE, State.ENDED].includes(this.#state);
  }

  /** See to it that there is a conversation, and that it can be heard; false if the server wants a key first. */
  async #begin() {
    this.#beginning ??= this.#beginOnce().finally(() => (this.#beginning = null));
    return this.#beginning;
  }

  async #beginOnce() {
    if (!this.#isLive) {
      const { isKeyNeeded, voices } = await askServer();
      if (isKeyNeeded) {
        this.#askForKey();
        return false;
      }
      this.#voices = voices;
      await this.#open();
      this.conversation.start();
    }
    await this.#audio?.resume();
    this.#showControls();
    return true;
  }

  /** A new conversation, not begun yet. */
  async #open() {
    this.conversation?.close();
    this.#timeline.clear();
    this.#transcript.clear();
    this.#hideNotice();
    element("welcome").hidden = true;
    this.conversation = new Conversation({ url: SESSION_URL, key: key(), view: this });
    this.#audio ??= openAudio();
    if (this.#audio) await this.conversation.openVoice(this.#audio);
    this.#lanes.run();
  }

  async #listen() {
    if (!isSecureOrigin()) return;
    const microphone = new Microphone({
      onBlock: (block) => this.conversation.hear(block),
      onLost: () => this.#lostMicrophone(),
    });
    try {
      await microphone.open(this.#audio);
      this.#microphone = microphone;
    } catch (error) {
      this.#notify(microphoneProblem(error));
    }
    this.#showControls();
  }

  async #lostMicrophone() {
    await this.#stopListening();
    this.#notify(MICROPHONE_LOST);
  }

  async #stopListening() {
    const microphone = this.#microphone;
    this.#microphone = null;
    await microphone?.close();
    this.#showControls();
  }

  // ---------------------------------------------------------------- what the conversation shows

  stateChanged(state) {
    const now = performance.now();
    if (state.name === State.WAITING) this.#timeline.beginOutage(now, this.#isCutting);
    if (state.name === State.OPEN) this.#timeline.endOutage(now);
    if (state.name === State.ENDED) {
      if (state.reason === "client_closed") this.#lanes.pause(); // else what was said last may still sound
      this.#stopListening();
    }
    const { tone, text } = statusOf(state);
    element("status").dataset.tone = tone;
    element("status-text").textContent = text;
    const notice = noticeOf(state);
    if (notice) this.#notify(notice.text, notice.action);
    else if (state.name === State.OPEN) this.#hideNotice();
    this.#showFigures();
    this.#showControls();
  }

  settingsChanged({ audio }) {
    element("voice").replaceChildren(...this.#voices.map((voice) => new Option(voice)));
    element("voice").value = audio.output.voice;
  }

  entryChanged(entry) {
    this.#transcript.show(entry);
  }

  entryRemoved(id) {
    this.#transcript.remove(id);
  }

  level(isUser, level) {
    this.#timeline.addLevel(isUser, level, performance.now());
    if (!isUser) element("voice-name").classList.toggle("speaks", level > SOUNDS);
  }

  speech(isBegin, at) {
    if (isBegin) this.#timeline.beginSpeech(at);
    else this.#timeline.endSpeech(at);
    element("you-name").classList.toggle("speaks", isBegin);
  }

  interrupted() {
    this.#timeline.addInterruption(performance.now());
  }

  answered(span) {
    this.#timeline.addAnswer(span);
    this.#showFigures();
  }

  dropped() {
    this.#showFigures();
  }

  warned(event) {
    this.#notify(warningOf(event));
  }

  failed({ code, message }) {
    if (!HANDLED.has(code)) this.#notify(`The server refused this: ${message}`, null, NOTICE_MS);
  }

  // ---------------------------------------------------------------- controls

  #showControls() {
    const isOpen = this.#state === State.OPEN;
    element("cut").disabled = !isOpen;
    element("silence").disabled = element("end").disabled = !this.#isLive;
    element("voices").hidden = !this.#isLive || this.#voices.length < 2;
    const [text, icon, state] = this.#talkButton();
    element("talk-text").textContent = text;
    element("talk-icon").setAttribute("href", `#icon-${icon}`);
    element("talk").dataset.state = state;
  }

  #talkButton() {
    if (this.#microphone?.isMuted) return ["Unmute", "muted", "muted"];
    if (this.#microphone) return ["Mute", "microphone", "live"];
    return [this.#isLive ? "Continue talking" : "Start talking", "microphone", "idle"];
  }

  #showSend() {
    element("send").disabled = !element("text").value.trim();
  }

  #showFigures() {
    const { latency, droppedMs, report } = this.conversation;
    const ms = (figure) => (figure === null ? "–" : `${Math.round(figure)} ms`);
    element("latency").textContent = ms(latency.figures.at(-1) ?? null);
    element("median").textContent = ms(latency.median);
    element("resumes").textContent = { 0: "–", 1: "once" }[report.resumes] ?? `${report.resumes} times`;
    element("lost").textContent = droppedMs ? `${(droppedMs / 1000).toFixed(1)} s` : "none";
  }

  /** Say what needs attention; `passingMs` for as long only. */
  #notify(text, action = null, passingMs = null) {
    clearTimeout(this.#noticeTimer);
    element("notice").hidden = false;
    element("notice-text").textContent = text;
    element("key-form").hidden = true;
    element("notice-action").hidden = action === null;
    element("notice-action").textContent = action ?? "";
    if (passingMs) this.#noticeTimer = setTimeout(() => this.#hideNotice(), passingMs);
  }

  #hideNotice() {
    element("notice").hidden = true;
  }
}

const page = new Page();
/** Documented for the console: `counterpoint.conversation.report`, `.send(event)`. */
globalThis.counterpoint = page;
await page.takeUp();
