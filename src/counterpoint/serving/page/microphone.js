/**
 * The user's voice, from permission to blocks of samples.
 *
 * Owns: asking for the microphone, its processing by the browser, muting, giving it back.
 * Does not own: blocks (`microphone.worklet.js`), sending (`conversation.js`).
 * Here because: what a browser may refuse, and why, is known in one place.
 */

import { RATE } from "./pcm.js";

const WISHES = { channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true };

const askForStream = () => navigator.mediaDevices.getUserMedia({ audio: WISHES });

/** Whether this page may hear and speak at all: browsers allow it on https and on this machine only. */
export const isSecureOrigin = () => Boolean(navigator.mediaDevices && globalThis.AudioWorkletNode);

export class Microphone {
  #onBlock;
  #onLost;
  #stream = null;
  #context = null; // our own, where the shared one cannot take this microphone
  #node = null;
  #onClosed = null;

  /** `onBlock({samples, level})` gets blocks of 20 ms; `onLost()` that the device went away. */
  constructor({ onBlock, onLost = () => {} }) {
    this.#onBlock = onBlock;
    this.#onLost = onLost;
  }

  get isMuted() {
    return !this.#stream?.getAudioTracks().some(({ enabled }) => enabled);
  }

  /** Raises what `getUserMedia` raises (`NotAllowedError`, `NotFoundError`, `NotReadableError`). */
  async open(context, ask = askForStream) {
    this.#stream = await ask();
    this.#stream.getAudioTracks().forEach((track) => track.addEventListener("ended", this.#onLost));
    const source = this.#sourceIn(context);
    await source.context.audioWorklet.addModule(new URL("microphone.worklet.js", import.meta.url));
    const oneChannel = { channelCount: 1, channelCountMode: "explicit", numberOfOutputs: 0 };
    this.#node = new AudioWorkletNode(source.context, "microphone", oneChannel);
    this.#node.port.onmessage = ({ data }) => (data.isLast ? this.#onClosed() : this.#onBlock(data));
    source.connect(this.#node);
  }

  /** A muted microphone hears silence: time goes on, and the turn that it interrupts comes to its end. */
  mute(isMuted) {
    this.#stream?.getAudioTracks().forEach((track) => (track.enabled = !isMuted));
  }

  /** Give the device back; resolves when the last block was handed over. */
  async close() {
    if (this.#node) {
      const closed = new Promise((resolve) => (this.#onClosed = resolve));
      this.#node.port.postMessage("close");
      await closed;
    }
    this.#stream?.getTracks().forEach((track) => track.stop());
    await this.#context?.close();
  }

  /** Some browsers take a microphone only at the rate of the device: then the worklet resamples. */
  #sourceIn(context) {
    try {
      return context.createMediaStreamSource(this.#stream);
    } catch {
      this.#context = new AudioContext({ latencyHint: "interactive" });
      return this.#context.createMediaStreamSource(this.#stream);
    }
  }
}

/** A context at the wire's rate, or null where there is no audio. */
export const openAudio = () =>
  isSecureOrigin() ? new AudioContext({ sampleRate: RATE, latencyHint: "interactive" }) : null;
