async (load) => {
  const { Player } = await load("player.js");
  const { toBase64 } = await load("pcm.js");

  /** A player whose audio thread is the test: `pushed` is what reached it, by item. */
  function world() {
    const [told, positions, pushed, stopped] = [[], [], {}, []];
    const player = new Player({
      tell: (event, isCommand) => told.push({ ...event, isCommand }),
      onPlayed: (position) => positions.push(position),
      onLevel: () => {},
    });
    const port = {
      postMessage({ type, key, samples, start }) {
        if (type === "push") (pushed[key] ??= []).push({ start, samples: [...samples] });
        if (type === "stop") stopped.push(key);
      },
    };
    player.attach(port);
    const report = (key, played, isOver = false) =>
      port.onmessage({ data: { tracks: [{ key, played, checksum: 0, isOver }], level: 0, underruns: 0 } });
    return { player, told, positions, pushed, stopped, report };
  }

  let number = 0;
  const delta = (response, item, values, seq = (number += 1)) => ({
    type: "response.output_audio.delta",
    server_event_seq: seq,
    response_id: response,
    item_id: item,
    delta: toBase64(Int16Array.from(values)),
  });
  const done = (id, status) => ({ type: "response.done", response: { id, status } });

  return {
    "after an interruption only the new answer sounds (case E-06)": () => {
      const { player, pushed, stopped } = world();
      player.handle(delta("r1", "i1", [1, 2]));
      player.handle(delta("r1", "i1", [3]));
      player.handle(done("r1", "cancelled"));
      player.handle(delta("r1", "i1", [4]));
      player.handle(delta("r1", "i9", [5]));
      player.handle(delta("r2", "i2", [6]));
      equal(stopped, ["i1"]);
      equal(Object.keys(pushed), ["i1", "i2"]);
      equal(pushed.i1.flatMap(({ samples }) => samples), [1, 2, 3]);
      equal(pushed.i2[0].samples, [6]);
    },

    "what the server cleared or cut is stopped too": () => {
      const { player, stopped } = world();
      player.handle(delta("r1", "i1", [1]));
      player.handle(delta("r2", "i2", [1]));
      player.handle({ type: "output_audio_buffer.cleared", response_id: "r1" });
      player.handle({ type: "conversation.item.truncated", item_id: "i2", audio_end_ms: 0 });
      equal(stopped, ["i1", "i2"]);
    },

    "a response that ended otherwise plays to its end": () => {
      for (const status of ["completed", "incomplete", "failed"]) {
        const { player, stopped } = world();
        player.handle(delta("r1", "i1", [1]));
        player.handle(done("r1", status));
        equal(stopped, [], status);
      }
    },

    "what was played is acknowledged as it was played, and at once at the end": () => {
      const { player, told, report } = world();
      player.handle(delta("r1", "i1", new Array(4800).fill(1)));
      report("i1", 2400);
      report("i1", 2424);
      report("i1", 4800, true);
      equal(told.map((event) => event.played_ms), [100, 200]);
      equal([told[0].type, told[0].item_id, told[0].response_id], ["playback.ack", "i1", "r1"]);
      ok(player.isQuiet, "something plays");
    },

    "the user's interruption tells the server where": async () => {
      const { player, told, positions, stopped, report } = world();
      player.handle(delta("r1", "i1", new Array(48000).fill(1)));
      report("i1", 2400);
      const interrupted = player.interrupt();
      equal(stopped, ["i1"]);
      report("i1", 2640, true);
      equal(await interrupted, ["r1"]);
      const said = told.at(-1);
      equal([said.played_ms, said.truncate, said.isCommand], [110, true, true]);
      ok(positions.at(-1).isCut, "it is not shown as cut");
      equal(await player.interrupt(), []);
    },

    "after a reload only what was not heard is played": () => {
      const before = world();
      before.player.handle(delta("r1", "i1", [0, 1, 2, 3], 11));
      before.player.handle(delta("r1", "i1", [4, 5, 6, 7], 12));
      before.player.handle(delta("r1", "i1", [8, 9], 13));
      before.report("i1", 6);
      const after = world();
      after.player.recall(JSON.parse(JSON.stringify(before.player.memory)));
      equal(after.player.memory, before.player.memory, "a second reload at once forgets");
      after.player.handle(delta("r1", "i1", [4, 5, 6, 7], 12)); // 11 was passed over by the server
      after.player.handle(delta("r1", "i1", [8, 9], 13));
      equal(after.pushed.i1, [{ start: 6, samples: [6, 7] }, { start: 8, samples: [8, 9] }]);
      equal(after.player.memory.played, { i1: 6 });
    },

    "what was heard whole before a reload is over": () => {
      const { player, pushed, positions } = world();
      player.recall({ ends: { 11: 2 }, played: { i1: 2 } });
      player.handle(delta("r1", "i1", [0, 1], 11));
      player.handle({ type: "response.output_audio.done", item_id: "i1" });
      equal(pushed, {});
      equal([positions.length, positions[0]?.isOver, player.isQuiet], [1, true, true]);
    },

    "after a resume everything is acknowledged again": () => {
      const { player, told, report } = world();
      player.handle(delta("r1", "i1", new Array(480).fill(1)));
      report("i1", 480, true);
      const before = told.length;
      player.acknowledgeAgain();
      equal(told.slice(before).map((event) => [event.item_id, event.played_ms]), [["i1", 20]]);
    },

    "long conversations are forgotten piece by piece": () => {
      const { player, report } = world();
      for (let n = 0; n < 100; n += 1) {
        player.handle(delta(`r${n}`, `i${n}`, [1]));
        report(`i${n}`, 1, true);
      }
      ok(Object.keys(player.rendered).length <= 32, "all is remembered");
    },
  };
}
