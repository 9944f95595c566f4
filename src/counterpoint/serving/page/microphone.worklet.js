/**
 * The audio thread's end of the microphone.
 *
 * Owns: cutting what is heard into blocks of 16-bit samples at the wire's rate.
 * Does not own: permission and devices (`microphone.js`).
 * Here because: only here does every sample pass by.
 */

import { loudness, RATE } from "./pcm.js";
import { Resampler } from "./resample.js";

/** 20 ms. */
const BLOCK = RATE / 50;

class MicrophoneProcessor extends AudioWorkletProcessor {
  #resampler = sampleRate === RATE ? null : new Resampler(sampleRate, RATE);
  #block = new Float32Array(BLOCK);
  #filled = 0;
  #isOpen = true;

  constructor() {
    super();
    this.port.onmessage = () => this.#close();
  }

  process([[input]]) {
    if (input && this.#isOpen) this.#push(this.#resampler ? this.#resampler.push(input) : input);
    return this.#isOpen;
  }

  #push(samples) {
    for (const sample of samples) {
      this.#block[this.#filled] = sample;
      this.#filled += 1;
      if (this.#filled === BLOCK) this.#send();
    }
  }

  #send() {
    const heard = this.#block.subarray(0, this.#filled);
    const samples = Int16Array.from(heard, (x) => Math.round(Math.min(1, Math.max(-1, x)) * 32767));
    this.port.postMessage({ samples, level: loudness(heard) }, [samples.buffer]);
    this.#filled = 0;
  }

  /** The block that was begun counts too. */
  #close() {
    this.#isOpen = false;
    if (this.#filled) this.#send();
    this.port.postMessage({ isLast: true });
  }
}

registerProcessor("microphone", MicrophoneProcessor);
