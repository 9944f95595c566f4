/**
 * One conversation: a session, what is heard and said in it, and what a reload needs to take it up again.
 *
 * Owns: who gets which event, the clock of what was spoken, when everything so far is settled.
 * Does not own: connections (`protocol.js`), audio (`player.js`, `microphone.js`), anything that is drawn.
 * Here because: without a page around it, it is the example of a client that resumes.
 */

import { Latency } from "./latency.js";
import * as memory from "./memory.js";
import { Outbox } from "./outbox.js";
import { RATE, toBase64, toMs } from "./pcm.js";
import { Player } from "./player.js";
import { Session, State } from "./protocol.js";
import { Transcript } from "./transcript.js";

const SETTLE_MS = 1000;

const FORMAT = { type: "audio/pcm", rate: RATE };
const SETTINGS = {
  type: "realtime",
  audio: {
    input: {
      format: FORMAT,
      transcription: { model: "default" },
      turn_detection: { type: "semantic_vad", eagerness: "high", create_response: true, interrupt_response: true },
    },
    output: { format: FORMAT },
  },
};

export class Conversation {
  /** Of the server's session, as it was last shown. */
  settings = null;
  latency = new Latency();
  /** Milliseconds of speech that an outage swallowed. */
  droppedMs = 0;

  #view;
  #session;
  #outbox;
  #player;
  #transcript;
  #hasVoice = false;
  #active = new Set(); // responses that run
  #spokenMs = 0; // the session's input clock, at the end of all that was said
  #spokenAt = 0; // when that was
  #checkpoint = null; // {cursor, transcript}: nothing before it will be needed again
  #timer;
  #keepNow = () => this.#keep();

  /**
   * `key` is what the server asks for, or null.
   * `view` is told of everything that can be seen: `stateChanged(state)`, `settingsChanged(settings)`,
   * `entryChanged(entry)`, `entryRemoved(id)`, `level(isUser, level)`, `speech(isBegin, at)`, `interrupted()`,
   * `answered({from, to})`, `dropped()`, `failed(error)`, `warned(event)`. Times are of `performance.now()`.
   */
  constructor({ url, key, view }) {
    this.#view = view;
    this.#outbox = new Outbox((ms) => this.#dropped(ms));
    this.#session = new Session({
      url,
      openSocket: (address) => new WebSocket(address, protocolsFor(key)),
      outbox: this.#outbox,
      onEvent: (event) => this.#handle(event),
      onState: (state) => this.#stateChanged(state),
    });
    this.#player = new Player({
      tell: (event, isCommand) => (isCommand ? this.#session.say(event) : this.#session.mention(event)),
      onPlayed: (position) => this.#played(position),
      onLevel: (level) => view.level(false, level),
    });
    this.#transcript = new Transcript({
      onChange: (entry) => view.entryChanged(entry),
      onRemove: (id) => view.entryRemoved(id),
    });
    this.#timer = setInterval(() => this.#settle(), SETTLE_MS);
    addEventListener("pagehide", this.#keepNow);
  }

  // ---------------------------------------------------------------- what the user does

  /** Answers will sound in `context`; without one they are written. */
  async openVoice(context) {
    await this.#player.open(context);
    this.#hasVoice = true;
  }

  /** Begin. What is said from now on waits until the session is open. */
  start() {
    const modalities = this.#hasVoice ? ["audio"] : ["text"];
    this.#session.say({ type: "session.update", session: { ...SETTINGS, output_modalities: modalities } });
    this.#session.start();
  }

  /** Go on with the conversation of this tab's earlier page (`memory.recall`). */
  takeUp({ id, token, cursor, transcript, playback }) {
    this.#checkpoint = { cursor, transcript };
    this.#transcript.restore(transcript);
    this.#player.recall(playback);
    this.#session.resume({ id, token, cursor });
  }

  /** The microphone heard a block. */
  hear({ samples, level }) {
    const now = performance.now();
    const ms = toMs(samples.length);
    this.#spokenMs += ms;
    this.#spokenAt = now;
    this.latency.hear(level, now);
    this.#view.level(true, level);
    this.#session.say({ type: "input_audio_buffer.append", audio: toBase64(samples) }, ms);
  }

  /** Say it in writing; what is being said gives way. */
  async write(text) {
    await this.interrupt();
    this.latency.turnStarted();
    const id = newItemId();
    this.#transcript.typed(id, text);
    const item = { id, type: "message", role: "user", content: [{ type: "input_text", text }] };
    this.#session.say({ type: "conversation.item.create", item });
    this.#session.say({ type: "response.create" });
  }

  /** Stop the voice. */
  async interrupt() {
    const stopped = await this.#player.interrupt();
    const isStillBusy = [...this.#active].some((id) => !stopped.includes(id));
    if (isStillBusy) this.#session.say({ type: "response.cancel" });
  }

  /** Change the session: `{audio: {output: {voice}}}`. */
  update(session) {
    this.#session.say({ type: "session.update", session });
  }

  /** The session's (`protocol.js`). */
  get state() {
    return this.#session.state;
  }

  cut(outageMs) {
    this.#session.cut(outageMs);
  }

  retry() {
    this.#session.retry();
  }

  /** End the session, if it has not ended, and fall silent. */
  close() {
    this.#session.close();
    this.#player.close();
  }

  /** For whoever wants to look behind the page: any event to the server, and what arrived. */
  send(event) {
    this.#session.say(event);
  }

  get report() {
    const { state, credentials, cursor, duplicates, holes, resumes } = this.#session;
    return {
      state: state.name,
      session: credentials?.id ?? null,
      cursor,
      duplicates,
      holes,
      resumes,
      droppedMs: this.droppedMs,
      answersMs: this.latency.figures,
      underruns: this.#player.underruns,
      rendered: this.#player.rendered,
    };
  }

  // ---------------------------------------------------------------- what happens

  #handle(event) {
    if (event.type === "response.created") this.#settle();
    this.#player.handle(event);
    this.#transcript.handle(event);
    switch (event.type) {
      case "session.created":
      case "session.updated":
        this.#settingsChanged(event.session);
        break;
      case "session.resumed":
        this.#spokenMs = event.input_audio_ms + this.#outbox.speechMs;
        this.#spokenAt = performance.now();
        this.#active = new Set([event.session.active_response_id].filter(Boolean));
        this.#settingsChanged(event.session);
        this.#player.acknowledgeAgain();
        break;
      case "session.queued":
      case "session.expiring":
      case "session.go_away":
        this.#view.warned(event);
        break;
      case "input_audio_buffer.speech_started":
        this.latency.turnStarted();
        this.#view.speech(true, this.#timeOf(event.audio_start_ms));
        break;
      case "input_audio_buffer.speech_stopped":
        this.latency.turnEnded(performance.now());
        this.#view.speech(false, this.#timeOf(event.audio_end_ms));
        break;
      case "response.created":
        this.#active.add(event.response.id);
        break;
      case "response.done":
        this.#active.delete(event.response.id);
        break;
      case "error":
        this.#view.failed(event.error);
        break;
    }
  }

  /** When the sample at `inputMs` of the input clock was spoken. */
  #timeOf(inputMs) {
    return this.#spokenAt - (this.#spokenMs - inputMs);
  }

  #settingsChanged(session) {
    this.settings = session;
    this.#view.settingsChanged(session);
  }

  #stateChanged(state) {
    if (state.name === State.ENDED) this.#finish();
    else if (state.name === State.OPEN) this.#settle();
    this.#view.stateChanged(state);
  }

  #played(position) {
    this.#transcript.played(position);
    if (position.isCut) this.#view.interrupted();
    const span = this.latency.sounded(position.responseId, performance.now());
    if (span) this.#view.answered(span);
  }

  #dropped(ms) {
    this.droppedMs += ms;
    this.#spokenMs -= ms;
    this.#view.dropped();
  }

  // ---------------------------------------------------------------- what a reload needs

  /** When nothing is being said, everything so far is settled: the server may forget it. */
  #settle() {
    const isQuiet = this.#active.size === 0 && this.#player.isQuiet;
    const { cursor } = this.#session;
    if (isQuiet && this.#session.state.name === State.OPEN && cursor !== this.#checkpoint?.cursor) {
      this.#checkpoint = { cursor, transcript: this.#transcript.entries };
      this.#session.processed = cursor;
      this.#player.settle();
    }
    this.#keep();
  }

  #keep() {
    const { credentials } = this.#session;
    if (!credentials || !this.#checkpoint) return;
    memory.keep({ ...credentials, ...this.#checkpoint, playback: this.#player.memory });
  }

  #finish() {
    clearInterval(this.#timer);
    removeEventListener("pagehide", this.#keepNow);
    memory.forget();
  }
}

/** A browser can set no header of a WebSocket, but its protocols. */
const protocolsFor = (key) => ["realtime", ...(key ? [`openai-insecure-api-key.${key}`] : [])];

/** The client may choose an item's id: what was typed is then known by it before the server answers. */
function newItemId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `item_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
