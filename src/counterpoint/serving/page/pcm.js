/**
 * Samples as the wire carries them: signed 16-bit, little-endian, base64.
 *
 * Owns: the conversion in both directions, the loudness of a block.
 * Does not own: rates (`resample.js`), what is done with samples.
 * Here because: microphone, player and lanes must mean the same by a sample.
 */

/** Samples per second, in both directions: the wire's default. */
export const RATE = 24000;

/** Int16Array -> base64. A block is short enough to be the arguments of one call. */
export function toBase64(samples) {
  const bytes = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
  return btoa(String.fromCharCode(...bytes));
}

/** base64 -> Int16Array, of any length. */
export function fromBase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return new Int16Array(bytes.buffer);
}

/** Root mean square of samples between -1 and 1. */
export function loudness(samples) {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return samples.length ? Math.sqrt(sum / samples.length) : 0;
}

/** Milliseconds of so many samples. */
export const toMs = (samples) => (samples * 1000) / RATE;
