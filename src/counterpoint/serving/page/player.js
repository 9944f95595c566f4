/**
 * The voice: what to play, what must not be played any more, and what was heard.
 *
 * Owns: which events stop which audio, acknowledgements of playback, what a reload needs to go on.
 * Does not own: the queue and the counting (`playout.js`, on the audio thread), text (`transcript.js`).
 * Here because: an interrupted word must fall silent at once, and the server must learn what was heard
 * (wire contract, sections 6 and 7).
 */

import { fromBase64, toMs } from "./pcm.js";

const ACK_MS = 150;
/** The audio thread answers within a block; where it sleeps, nothing plays. */
const STOP_MS = 200;
/** Tracks and stopped responses that are remembered. */
const MAX_REMEMBERED = 32;

export class Player {
  /** Times that playback ran dry within an answer. */
  underruns = 0;

  #tell;
  #onPlayed;
  #onLevel;
  #node = null;
  #port = null;
  #tracks = new Map(); // item id -> {itemId, responseId, received, played, checksum, isOver, acknowledgedAt}
  #stopped = new Set(); // responses of which nothing is played any more
  #earlier = { ends: {}, played: {} }; // what the page before a reload knew
  #ends = {}; // event number -> samples of the track by its end, for events that a reload would get again

  /**
   * `tell(event, isCommand)` speaks to the server; `onPlayed({itemId, responseId, playedMs, isOver, isCut})`;
   * `onLevel(level)` the loudness (0 to 1) of what was played since the last time.
   */
  constructor({ tell, onPlayed, onLevel }) {
    this.#tell = tell;
    this.#onPlayed = onPlayed;
    this.#onLevel = onLevel;
  }

  /** Connect to the loudspeaker. Until then, what is to be played waits in the context's thread. */
  async open(context) {
    await context.audioWorklet.addModule(new URL("player.worklet.js", import.meta.url));
    const node = new AudioWorkletNode(context, "player", { numberOfInputs: 0, outputChannelCount: [1] });
    node.connect(context.destination);
    this.#node = node;
    this.attach(node.port);
  }

  /** Fall silent, for good. */
  close() {
    this.#node?.disconnect();
    if (this.#port) this.#port.onmessage = null;
    this.#port = null;
  }

  /** Speak to the audio thread through `port`. */
  attach(port) {
    this.#port = port;
    port.onmessage = ({ data }) => this.#reported(data);
  }

  /** Nothing waits to be played or heard. */
  get isQuiet() {
    return [...this.#tracks.values()].every(({ isOver }) => isOver);
  }

  /** `{itemId: {samples, checksum}}` of what was rendered. */
  get rendered() {
    const entries = [...this.#tracks.values()];
    return Object.fromEntries(entries.map((t) => [t.itemId, { samples: t.played, checksum: t.checksum }]));
  }

  // ---------------------------------------------------------------- over a reload

  /** What the next page must know of audio that is not settled. */
  get memory() {
    const played = [...this.#tracks.values()].map(({ itemId, played }) => [itemId, played]);
    return {
      ends: { ...this.#earlier.ends, ...this.#ends },
      played: { ...this.#earlier.played, ...Object.fromEntries(played) },
    };
  }

  recall(memory) {
    this.#earlier = memory;
  }

  /** No event up to now will be sent again. */
  settle() {
    this.#ends = {};
    this.#earlier = { ends: {}, played: {} };
  }

  // ---------------------------------------------------------------- what the server says

  handle(event) {
    switch (event.type) {
      case "response.output_audio.delta":
        this.#receive(event);
        break;
      case "response.output_audio.done":
        this.#end(event.item_id);
        break;
      case "response.done":
        if (event.response.status === "cancelled") this.#stop(event.response.id);
        else this.#of(event.response.id).forEach(({ itemId }) => this.#end(itemId));
        break;
      case "output_audio_buffer.cleared":
        this.#stop(event.response_id);
        break;
      case "conversation.item.truncated":
        this.#leave(this.#tracks.get(event.item_id));
        break;
    }
  }

  /** After a resume: what was said last may not have arrived. */
  acknowledgeAgain() {
    for (const track of this.#tracks.values()) this.#acknowledge(track);
  }

  /** Stop what plays, here and at the server; resolves to the responses once the server was told where. */
  async interrupt() {
    const playing = [...this.#tracks.values()].filter(({ isOver }) => !isOver);
    await Promise.all(playing.map((track) => this.#leave(track)));
    for (const { itemId, responseId, played } of playing) {
      this.#remember(responseId);
      const position = { item_id: itemId, response_id: responseId, played_ms: Math.floor(toMs(played)) };
      this.#tell({ type: "playback.ack", ...position, truncate: true }, true);
    }
    return playing.map(({ responseId }) => responseId);
  }

  // ---------------------------------------------------------------- tracks

  #receive({ server_event_seq: number, response_id: responseId, item_id: itemId, delta }) {
    if (!this.#port || this.#stopped.has(responseId)) return;
    const track = this.#tracks.get(itemId) ?? this.#begin(itemId, responseId);
    if (track.isOver) return;
    const samples = fromBase64(delta);
    const end = this.#earlier.ends[number] ?? track.received + samples.length;
    const start = end - samples.length;
    track.received = this.#ends[number] = end;
    const heard = Math.min(samples.length, Math.max(0, track.played - start));
    if (heard === samples.length) return;
    this.#port.postMessage({ type: "push", key: itemId, samples: samples.slice(heard), start: start + heard });
  }

  #begin(itemId, responseId) {
    const played = this.#earlier.played[itemId] ?? 0;
    const track = { itemId, responseId, received: played, played, checksum: 0, isOver: false, acknowledgedAt: 0 };
    this.#tracks.set(itemId, track);
    for (const [id, { isOver }] of this.#tracks) {
      if (this.#tracks.size <= MAX_REMEMBERED) break;
      if (isOver) this.#tracks.delete(id);
    }
    return track;
  }

  #of(responseId) {
    return [...this.#tracks.values()].filter((track) => track.responseId === responseId);
  }

  #end(itemId) {
    const track = this.#tracks.get(itemId);
    if (!track || !this.#port) return;
    this.#port.postMessage({ type: "end", key: itemId });
    if (track.played >= track.received) this.#advance(track, { ...track, isOver: true });
  }

  #stop(responseId) {
    this.#remember(responseId);
    this.#of(responseId).forEach((track) => this.#leave(track));
  }

  #remember(responseId) {
    this.#stopped.add(responseId);
    if (this.#stopped.size > MAX_REMEMBERED) this.#stopped.delete(this.#stopped.values().next().value);
  }

  /** Play no more of a track; resolves when the audio thread has said how far it came. */
  #leave(track) {
    if (!track || !this.#port || track.isOver) return null;
    this.#port.postMessage({ type: "stop", key: track.itemId });
    return new Promise((resolve) => {
      track.onLeft = resolve;
      setTimeout(resolve, STOP_MS);
    });
  }

  // ---------------------------------------------------------------- what the audio thread says

  #reported({ tracks, level, underruns }) {
    this.underruns = underruns;
    this.#onLevel(level);
    for (const { key, played, checksum, isOver } of tracks) {
      const track = this.#tracks.get(key);
      if (track) this.#advance(track, { played, checksum, isOver });
    }
  }

  #advance(track, { played, checksum, isOver }) {
    if (track.isOver) return;
    Object.assign(track, { played, checksum, isOver });
    const { itemId, responseId, acknowledgedAt, onLeft } = track;
    this.#onPlayed({ itemId, responseId, playedMs: toMs(played), isOver, isCut: Boolean(onLeft) && isOver });
    if (isOver || performance.now() - acknowledgedAt >= ACK_MS) this.#acknowledge(track);
    if (isOver) onLeft?.();
  }

  #acknowledge(track) {
    track.acknowledgedAt = performance.now();
    const { itemId, responseId, played } = track;
    const playedMs = Math.floor(toMs(played));
    this.#tell({ type: "playback.ack", item_id: itemId, response_id: responseId, played_ms: playedMs }, false);
  }
}
