async (load) => {
  const { Playout } = await load("playout.js");
  const BLOCK = 128;
  const RATE = 24000;

  const silence = (ms) => new Int16Array((ms * RATE) / 1000);
  const ramp = (from, to) => Int16Array.from({ length: to - from }, (_, i) => from + i);

  /** Blocks until nothing comes any more: the samples, and the last report of each track. */
  function render(playout, blocks) {
    const reports = {};
    const samples = [];
    const output = new Float32Array(BLOCK);
    for (let n = 0; n < blocks; n += 1) {
      for (const report of playout.render(output)) reports[report.key] = report;
      samples.push(...output);
    }
    return { samples: samples.map((sample) => Math.round(sample * 32768)), reports };
  }

  return {
    "what goes in comes out, once, in order, counted": () => {
      const playout = new Playout();
      for (let at = 0; at < 5000; at += 100) playout.push("a", ramp(at, at + 100));
      playout.end("a");
      const { samples, reports } = render(playout, 41);
      equal(samples.slice(0, 5000), [...ramp(0, 5000)]);
      equal(samples.slice(5000), Array(41 * BLOCK - 5000).fill(0));
      equal([reports.a.played, reports.a.isOver], [5000, true]);
      equal(playout.underruns, 0);
    },

    "items follow each other without a gap": () => {
      const playout = new Playout();
      playout.push("a", ramp(1, 201));
      playout.end("a");
      playout.push("b", ramp(201, 401));
      playout.end("b");
      equal(render(playout, 4).samples.slice(0, 400), [...ramp(1, 401)]);
    },

    "a lead is waited for, but not for what is complete": () => {
      const playout = new Playout();
      playout.push("a", ramp(1, 1001));
      equal(render(playout, 1).reports, {});
      playout.end("a");
      equal(render(playout, 1).reports.a.played, BLOCK);
    },

    "what was stopped is silent at once, and says how far it came": () => {
      const playout = new Playout();
      playout.push("a", ramp(1, 24001));
      render(playout, 10);
      const stopped = playout.stop("a");
      equal([stopped.key, stopped.played], ["a", 10 * BLOCK]);
      equal(render(playout, 1).samples, Array(BLOCK).fill(0));
      equal(playout.stop("a"), null);
    },

    "a track that begins in the middle counts from there": () => {
      const playout = new Playout();
      playout.push("a", ramp(0, 240), 2400);
      playout.end("a");
      equal(render(playout, 3).reports.a.played, 2640);
    },

    "bursts and a wrong clock: one underrun to learn from, then none in half an hour (case N-05)": () => {
      for (const skew of [0.999, 1.001]) {
        const playout = new Playout();
        const output = new Float32Array(BLOCK);
        const burst = silence(500);
        let atFirst = null;
        for (let answer = 0; answer < 30; answer += 1) {
          const key = `answer${answer}`;
          let sent = 0;
          let played = 0;
          for (let block = 0; played < 120 * burst.length; block += 1) {
            const now = ((block * BLOCK) / RATE) * skew; // the device's clock against the server's
            while (sent < 120 && sent * 0.5 <= now) {
              playout.push(key, burst);
              sent += 1;
              if (sent === 120) playout.end(key);
            }
            for (const report of playout.render(output)) played = report.played;
            const depthMs = ((sent * burst.length - played) * 1000) / RATE;
            ok(depthMs <= 1100 + 100, `${depthMs} ms are queued`);
          }
          atFirst ??= playout.underruns;
        }
        ok(atFirst <= 1, `${atFirst} underruns to begin with`);
        equal(playout.underruns, atFirst, "underruns later on");
      }
    },
  };
}
