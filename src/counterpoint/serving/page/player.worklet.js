/**
 * The audio thread's end of the player.
 *
 * Owns: messages from and to `player.js`: what to play, and what was played, some times a second.
 * Does not own: the queue itself (`playout.js`).
 * Here because: only the audio thread knows what the device took.
 */

import { loudness } from "./pcm.js";
import { Playout } from "./playout.js";

/** Blocks (of 128 samples) between two reports: 43 ms. */
const REPORT_BLOCKS = 8;

class PlayerProcessor extends AudioWorkletProcessor {
  #playout = new Playout();
  #reports = new Map();
  #playing = null;
  #loudest = 0;
  #blocks = 0;

  constructor() {
    super();
    this.port.onmessage = ({ data }) => this.#receive(data);
  }

  process(_inputs, [[output]]) {
    let isUrgent = false;
    for (const report of this.#playout.render(output)) {
      isUrgent ||= report.isOver || report.key !== this.#playing;
      this.#playing = report.key;
      this.#reports.set(report.key, report);
    }
    this.#loudest = Math.max(this.#loudest, loudness(output));
    this.#blocks += 1;
    if (isUrgent || this.#blocks >= REPORT_BLOCKS) this.#report();
    return true;
  }

  #receive({ type, key, samples, start }) {
    if (type === "push") this.#playout.push(key, samples, start);
    else if (type === "end") this.#playout.end(key);
    else {
      const report = this.#playout.stop(key);
      if (report) this.#reports.set(key, { ...report, isOver: true });
      this.#report();
    }
  }

  #report() {
    this.port.postMessage({
      tracks: [...this.#reports.values()],
      level: this.#loudest,
      underruns: this.#playout.underruns,
    });
    this.#reports.clear();
    this.#loudest = 0;
    this.#blocks = 0;
  }
}

registerProcessor("player", PlayerProcessor);
