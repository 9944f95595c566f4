/**
 * The queue between the network and the loudspeaker.
 *
 * Owns: the jitter buffer, how much of each track was rendered, the checksum of what was rendered.
 * Does not own: threads and messages (`player.worklet.js`), what a track is on the wire (`player.js`).
 * Here because: what was played is counted where it is played, and nowhere else (wire contract, section 7).
 *
 * A track is the audio of one item. Rendered counts as heard: a block that was given to the device will sound.
 */

import { RATE } from "./pcm.js";

const samplesOf = (ms) => (ms * RATE) / 1000;

/** Audio that is held before playback starts: covers the jitter of a model that speaks in real time. */
const LEAD = samplesOf(120);
/** A network that needs more gets more: what the last answer needed, and a margin, up to a limit. */
const MARGIN = samplesOf(40);
const MAX_LEAD = samplesOf(640);

export class Playout {
  #tracks = new Map(); // key -> {chunks, next, queued, ended, played, checksum}, in the order of playing
  #lead = LEAD;
  #isPlaying = false;
  #startDepth = 0; // what was queued when playback started
  #leastDepth = null; // and the least since then, as long as more was to come
  /** Times that playback ran dry within a track. */
  underruns = 0;

  /** More of a track; the first time, `start` is the place in the track at which its audio begins. */
  push(key, samples, start = 0) {
    const track = this.#tracks.get(key) ?? this.#begin(key, start);
    track.chunks.push(samples);
    track.queued += samples.length;
  }

  /** Nothing more of a track comes. */
  end(key) {
    const track = this.#tracks.get(key);
    if (track) track.ended = true;
  }

  /** Throw away what was not played of a track; returns its report, or null if there is no such track. */
  stop(key) {
    const track = this.#tracks.get(key);
    if (!track) return null;
    this.#tracks.delete(key);
    this.#isPlaying = false;
    return report(key, track);
  }

  /** Fill `output` (floats) with what comes next, else with silence; returns a report of each track it touched. */
  render(output) {
    output.fill(0);
    const reports = [];
    let at = 0;
    while (at < output.length) {
      const [key, track] = this.#tracks.entries().next().value ?? [];
      if (!track || !this.#mayPlay(track)) break;
      at += take(track, output.subarray(at));
      if (!track.ended) this.#leastDepth = Math.min(this.#leastDepth ?? Infinity, track.queued);
      const isOver = track.ended && track.queued === 0;
      if (isOver) this.#finish(key);
      reports.push({ ...report(key, track), isOver });
      if (isOver || track.queued > 0) continue;
      if (at < output.length) this.#runDry();
      break;
    }
    return reports;
  }

  #begin(key, start) {
    const track = { chunks: [], next: 0, queued: 0, ended: false, played: start, checksum: 0 };
    this.#tracks.set(key, track);
    return track;
  }

  #mayPlay(track) {
    if (!this.#isPlaying && (track.ended || track.queued >= this.#lead)) {
      this.#isPlaying = true;
      this.#startDepth = track.queued;
      this.#leastDepth = null;
    }
    return this.#isPlaying;
  }

  /** More should have come: wait for a longer lead. */
  #runDry() {
    this.#isPlaying = false;
    this.#lead = Math.min(MAX_LEAD, Math.max(2 * this.#lead, this.#startDepth + MARGIN));
    this.underruns += 1;
  }

  /** A track was played to its end: the next one starts with the lead that this one needed. */
  #finish(key) {
    this.#tracks.delete(key);
    this.#isPlaying = false;
    if (this.#leastDepth === null) return; // all of it was there from the start: nothing was learnt
    this.#lead = Math.min(MAX_LEAD, Math.max(LEAD, this.#startDepth - this.#leastDepth + MARGIN));
  }
}

const report = (key, { played, checksum }) => ({ key, played, checksum });

/** Move samples of a track into `output`; returns how many. */
function take(track, output) {
  let taken = 0;
  while (taken < output.length && track.queued > 0) {
    const chunk = track.chunks[0];
    const sample = chunk[track.next];
    output[taken] = sample / 32768;
    track.checksum = (Math.imul(track.checksum, 31) + sample) | 0;
    track.next += 1;
    track.played += 1;
    track.queued -= 1;
    taken += 1;
    if (track.next === chunk.length) {
      track.chunks.shift();
      track.next = 0;
    }
  }
  return taken;
}
