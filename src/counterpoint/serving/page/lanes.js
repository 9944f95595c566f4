/**
 * The two lanes: you and the voice over time, on a canvas.
 *
 * Owns: geometry, colours (read from the style sheet), the frames of the animation.
 * Does not own: what is shown (`timeline.js`).
 * Here because: that two voices sound together is seen at a glance, or not at all.
 */

import { BIN_MS } from "./timeline.js";

const WIDE_MS = 26000;
/** On a narrow screen the window is shorter, not finer. */
const MIN_PX_PER_MS = 0.032;
const RIGHT = 18;
const HEAD = 18;
const GUTTER = 22;
const FOOT = 20;
const FONT = "12px system-ui, sans-serif";
/** Decibels (full scale) at which a bar has no height, and how many more give it the lane's. */
const FLOOR_DB = -52;
const RANGE_DB = 42;
/** Louder than this the voice counts as speaking. */
const SOUNDS = 0.004;
const GRID_MS = 5000;
/** Smooth enough for what moves so slowly: the processor may be the one that the voice runs on. */
const FRAME_MS = 30;

export class Lanes {
  #canvas;
  #context;
  #timeline;
  #colours = {};
  #size = { width: 0, height: 0 };
  #isRunning = false;

  constructor(canvas, timeline) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d");
    this.#timeline = timeline;
    new ResizeObserver(() => this.#resize()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#resize());
  }

  /** Time goes on. */
  run() {
    if (this.#isRunning) return;
    this.#isRunning = true;
    let drawnAt = 0;
    const frame = (now) => {
      if (!this.#isRunning) return;
      if (now - drawnAt >= FRAME_MS) this.#draw((drawnAt = now));
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  /** Time stands still. */
  pause() {
    this.#isRunning = false;
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const scale = devicePixelRatio || 1;
    this.#canvas.width = Math.round(width * scale);
    this.#canvas.height = Math.round(height * scale);
    this.#context.setTransform(scale, 0, 0, scale, 0, 0);
    this.#size = { width, height };
    const style = getComputedStyle(this.#canvas);
    for (const name of ["you", "voice", "ink", "soft", "faint", "line", "overlap", "alert", "card"])
      this.#colours[name] = style.getPropertyValue(`--${name}`).trim();
    this.#draw(performance.now());
  }

  // ---------------------------------------------------------------- one frame

  #draw(now) {
    const { width, height } = this.#size;
    const pxPerMs = Math.max(MIN_PX_PER_MS, (width - RIGHT) / WIDE_MS);
    const lane = (height - HEAD - GUTTER - FOOT) / 2;
    const view = {
      now,
      pxPerMs,
      lane,
      from: now - (width - RIGHT) / pxPerMs,
      x: (at) => width - RIGHT - (now - at) * pxPerMs,
      user: HEAD + lane / 2,
      voice: HEAD + lane * 1.5 + GUTTER,
      top: HEAD,
      middle: HEAD + lane + GUTTER / 2,
      bottom: HEAD + 2 * lane + GUTTER,
    };
    this.#timeline.prune(now);
    this.#context.clearRect(0, 0, width, height);
    this.#context.font = FONT;
    this.#drawGrid(view);
    this.#drawOverlaps(view);
    this.#drawLevels(view);
    this.#drawOutages(view);
    this.#drawAnswers(view);
    this.#drawInterruptions(view);
    this.#drawNow(view);
  }

  #drawGrid(view) {
    const { line, soft } = this.#colours;
    this.#context.textAlign = "center";
    for (let ago = GRID_MS; view.now - ago > view.from; ago += GRID_MS) {
      const x = view.x(view.now - ago);
      this.#line(x, view.top, x, view.bottom, line);
      if (x > 20) this.#label(`−${ago / 1000} s`, x, view.bottom + 15, soft);
    }
    this.#line(0, view.middle, this.#size.width, view.middle, line);
  }

  #drawNow(view) {
    const x = view.x(view.now);
    this.#line(x, view.top, x, view.bottom, this.#colours.faint);
    this.#context.textAlign = "center";
    this.#label("now", x - 4, view.bottom + 15, this.#colours.soft);
  }

  #drawLevels(view) {
    const { you, voice, faint } = this.#colours;
    const bars = { quiet: new Path2D(), you: new Path2D(), voice: new Path2D() };
    const last = Math.floor(view.now / BIN_MS);
    for (let bin = Math.floor(view.from / BIN_MS); bin <= last; bin += 1) {
      const x = view.x(bin * BIN_MS);
      const isSpeech = this.#timeline.isSpeech((bin + 0.5) * BIN_MS);
      this.#addBar(isSpeech ? bars.you : bars.quiet, x, view.user, this.#timeline.level(true, bin), view);
      const level = this.#timeline.level(false, bin);
      this.#addBar(level > SOUNDS ? bars.voice : bars.quiet, x, view.voice, level, view);
    }
    this.#fill(bars.quiet, faint);
    this.#fill(bars.you, you);
    this.#fill(bars.voice, voice);
  }

  #addBar(path, x, middle, level, { pxPerMs, lane }) {
    const loud = (20 * Math.log10(Math.max(level, 1e-6)) - FLOOR_DB) / RANGE_DB;
    const half = Math.max(1, (Math.min(1, Math.max(0, loud)) * lane) / 2);
    const width = Math.max(1.5, BIN_MS * pxPerMs * 0.62);
    path.roundRect(x, middle - half, width, half * 2, Math.min(width, half) / 2);
  }

  /** Where both voices sound. */
  #drawOverlaps(view) {
    this.#context.fillStyle = this.#colours.overlap;
    const last = Math.floor(view.now / BIN_MS);
    for (let bin = Math.floor(view.from / BIN_MS); bin <= last; bin += 1) {
      const isBoth = this.#timeline.level(false, bin) > SOUNDS && this.#timeline.isSpeech((bin + 0.5) * BIN_MS);
      if (!isBoth) continue;
      const x = Math.round(view.x(bin * BIN_MS));
      const end = Math.round(view.x((bin + 1) * BIN_MS));
      this.#context.fillRect(x, view.top, end - x, view.bottom - view.top);
    }
  }

  #drawAnswers(view) {
    for (const { from, to } of this.#timeline.answers) {
      const [start, end] = [view.x(from), view.x(to)];
      this.#line(start, view.middle, end, view.middle, this.#colours.soft, 1.5);
      this.#line(start, view.middle - 4, start, view.middle + 4, this.#colours.soft, 1.5);
      this.#line(end, view.middle - 4, end, view.middle + 4, this.#colours.soft, 1.5);
      const text = `${Math.round(to - from)} ms`;
      const isWide = end - start > this.#context.measureText(text).width + 16;
      if (isWide) this.#tag(text, (start + end) / 2, view.middle, "center", this.#colours.soft);
      else this.#tag(text, start - 6, view.middle, "right", this.#colours.soft);
    }
  }

  #drawInterruptions(view) {
    const { alert } = this.#colours;
    for (const at of this.#timeline.interruptions) {
      const x = view.x(at);
      this.#line(x, view.top - 4, x, view.bottom, alert, 1.5);
      this.#context.textAlign = "center";
      this.#label("interrupted", x, view.top - 6, alert);
    }
  }

  #drawOutages(view) {
    for (const { from, to, isAsked } of this.#timeline.outages) {
      const [start, end] = [view.x(from), view.x(to ?? view.now)];
      this.#hatch(start, view.top, end - start, view.bottom - view.top);
      this.#line(start, view.top, start, view.bottom, this.#colours.soft);
      if (to !== null) this.#line(end, view.top, end, view.bottom, this.#colours.soft);
      const text = `${isAsked ? "cut" : "lost"} ${(((to ?? view.now) - from) / 1000).toFixed(1)} s`;
      this.#tag(text, (start + end) / 2, view.middle, "center", this.#colours.ink);
    }
  }

  // ---------------------------------------------------------------- strokes

  #hatch(x, y, width, height) {
    const context = this.#context;
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    context.beginPath();
    for (let at = x - height - (x % 9); at < x + width; at += 9) {
      context.moveTo(at, y + height);
      context.lineTo(at + height, y);
    }
    context.strokeStyle = this.#colours.faint;
    context.lineWidth = 1;
    context.stroke();
    context.restore();
  }

  #line(x, y, toX, toY, colour, width = 1) {
    this.#context.beginPath();
    this.#context.moveTo(x, y);
    this.#context.lineTo(toX, toY);
    this.#context.strokeStyle = colour;
    this.#context.lineWidth = width;
    this.#context.stroke();
  }

  #fill(path, colour) {
    this.#context.fillStyle = colour;
    this.#context.fill(path);
  }

  #label(text, x, y, colour) {
    this.#context.fillStyle = colour;
    this.#context.textBaseline = "alphabetic";
    this.#context.fillText(text, x, y);
  }

  /** A label on a line, which it covers. */
  #tag(text, x, y, align, colour) {
    const context = this.#context;
    const width = context.measureText(text).width;
    context.textAlign = align;
    context.textBaseline = "middle";
    context.fillStyle = this.#colours.card;
    context.fillRect((align === "right" ? x - width : x - width / 2) - 4, y - 8, width + 8, 16);
    context.fillStyle = colour;
    context.fillText(text, x, y + 0.5);
  }
}
