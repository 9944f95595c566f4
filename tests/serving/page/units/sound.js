async (load) => {
  const { Resampler } = await load("resample.js");
  const { fromBase64, loudness, toBase64 } = await load("pcm.js");
  const { Latency } = await load("latency.js");
  const { BIN_MS, Timeline } = await load("timeline.js");

  const tone = (hertz, rate, seconds) =>
    Float32Array.from({ length: rate * seconds }, (_, i) => Math.sin((2 * Math.PI * hertz * i) / rate));

  const inBlocks = (resampler, input, size) => {
    const output = [];
    for (let at = 0; at < input.length; at += size) output.push(...resampler.push(input.subarray(at, at + size)));
    return output;
  };

  return {
    "a tone keeps its loudness and its length at another rate": () => {
      for (const rate of [16000, 44100, 48000, 96000]) {
        const output = inBlocks(new Resampler(rate, 24000), tone(1000, rate, 1), 128);
        ok(Math.abs(output.length - 24000) < 100, `${output.length} samples from ${rate}`);
        const middle = loudness(Float32Array.from(output.slice(2000, -2000)));
        ok(Math.abs(middle - Math.SQRT1_2) < 0.01, `${middle} from ${rate}`);
      }
    },

    "what the lower rate cannot carry does not come back as another tone": () => {
      const output = inBlocks(new Resampler(48000, 24000), tone(15000, 48000, 1), 128);
      const left = loudness(Float32Array.from(output.slice(1000)));
      ok(left < 0.01, `${left} is left of a tone above the band`);
    },

    "blocks make no difference": () => {
      const input = tone(700, 44100, 0.3);
      const whole = inBlocks(new Resampler(44100, 24000), input, input.length);
      const pieces = inBlocks(new Resampler(44100, 24000), input, 128);
      equal(pieces.length, whole.length);
      ok(pieces.every((sample, i) => Math.abs(sample - whole[i]) < 1e-6), "they differ");
    },

    "samples survive the wire": () => {
      const samples = Int16Array.from([0, 1, -1, 32767, -32768]);
      equal([...fromBase64(toBase64(samples))], [...samples]);
    },

    "an answer's delay counts from the end of the voice, once a turn": () => {
      const latency = new Latency();
      for (let now = 0; now < 1000; now += 20) latency.hear(0.001, now);
      for (let now = 1000; now < 2000; now += 20) latency.hear(0.2, now);
      for (let now = 2000; now < 2400; now += 20) latency.hear(0.001, now);
      latency.turnEnded(2300);
      equal(latency.sounded("r1", 2600), { from: 1980, to: 2600 });
      equal(latency.sounded("r1", 2700), null);
      latency.turnStarted();
      equal(latency.sounded("r2", 3000), null);
      equal([latency.figures, latency.median], [[620], 620]);
    },

    "an answer that still sounds is not the next one": () => {
      const latency = new Latency();
      latency.turnEnded(0);
      latency.sounded("r1", 100);
      latency.turnEnded(500);
      equal(latency.sounded("r1", 600), null);
      equal(latency.sounded("r2", 900)?.to, 900);
    },

    "what nobody sees any more is forgotten": () => {
      const timeline = new Timeline();
      for (let now = 0; now < 600000; now += 20) timeline.addLevel(true, 0.1, now);
      timeline.beginSpeech(0);
      timeline.endSpeech(100);
      timeline.addInterruption(50);
      timeline.prune(600000);
      ok(timeline.levels.user.size <= 40000 / BIN_MS + 1, "all bins are kept");
      equal([timeline.speech, timeline.interruptions], [[], []]);
      equal(timeline.level(true, Math.floor(599990 / BIN_MS)), 0.1);
    },
  };
}
