/**
 * From the microphone's rate to the wire's, as a stream.
 *
 * Owns: the low-pass filter and the phase that goes on from block to block.
 * Does not own: where samples come from (`microphone.worklet.js`).
 * Here because: some browsers give a microphone only at the rate of the device.
 *
 * A windowed sinc, evaluated where an output sample falls. It holds back half its width, 0.7 ms at 48 kHz.
 */

/** Zero crossings on each side of the filter's middle. */
const LOBES = 16;

export class Resampler {
  #step; // input samples per output sample
  #cutoff; // of the filter, relative to the input rate
  #reach; // input samples on each side that an output sample depends on
  #held = new Float32Array(0);
  #at; // where the next output sample falls, in samples of #held

  /** Rates in samples per second. */
  constructor(from, to) {
    this.#step = from / to;
    this.#cutoff = Math.min(1, to / from);
    this.#reach = Math.ceil(LOBES / this.#cutoff);
    this.#held = new Float32Array(this.#reach);
    this.#at = this.#reach;
  }

  /** The output samples that `input` completes. */
  push(input) {
    const held = new Float32Array(this.#held.length + input.length);
    held.set(this.#held);
    held.set(input, this.#held.length);
    const output = [];
    while (this.#at + this.#reach < held.length) {
      output.push(this.#sampleAt(held, this.#at));
      this.#at += this.#step;
    }
    const passed = Math.max(0, Math.floor(this.#at) - this.#reach);
    this.#held = held.subarray(passed);
    this.#at -= passed;
    return Float32Array.from(output);
  }

  #sampleAt(held, at) {
    let sum = 0;
    for (let i = Math.ceil(at - this.#reach); i <= at + this.#reach; i += 1) {
      const distance = (i - at) * this.#cutoff;
      const window = 0.5 + 0.5 * Math.cos((Math.PI * (i - at)) / this.#reach);
      sum += held[i] * sinc(distance) * window;
    }
    return sum * this.#cutoff;
  }
}

const sinc = (x) => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));
