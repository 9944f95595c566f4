async (load) => {
  const { MAX_ATTEMPTS, Session, State } = await load("protocol.js");
  const { Outbox } = await load("outbox.js");

  /** A session whose sockets, clock and chance are the test's. */
  function world({ random = () => 0.5 } = {}) {
    const clock = new FakeClock();
    const [sockets, events, states] = [[], [], []];
    const openSocket = (url) => {
      sockets.push(new FakeSocket(url));
      return sockets.at(-1);
    };
    const session = new Session({
      url: "ws://here",
      outbox: new Outbox(),
      onEvent: (event) => events.push(event),
      onState: (state) => states.push(state),
      openSocket,
      clock,
      random,
    });
    const newest = () => sockets.at(-1);
    const open = () => {
      session.start();
      newest().onopen();
      newest().say(CREATED);
    };
    return { clock, sockets, events, states, session, newest, open };
  }

  return {
    "the cursor is a number that was read, not a count (case A-09)": () => {
      const { clock, session, events, newest, open } = world();
      open();
      newest().say(...[1, 2, 2, 3, 3, 4].map((number) => numbered(number)));
      equal(events.slice(1).map((event) => event.server_event_seq), [1, 2, 3, 4]);
      newest().drop();
      clock.advance(1000);
      newest().onopen();
      equal(newest().sent[0].last_received_server_event_seq, 4);
      equal([session.duplicates, session.holes], [2, 0]);
    },

    "a resume is the first word, with the newest token, and is proven before anything else": () => {
      const { clock, session, newest, open } = world();
      open();
      session.say({ type: "a" });
      newest().drop();
      clock.advance(1000);
      session.say({ type: "b" });
      newest().onopen();
      equal(newest().types(), ["session.resume"]);
      equal(newest().sent[0].resume_token, "token1");
      newest().say(resumed("token2"));
      equal(newest().types().slice(1), ["session.event_ack", "a", "b"]);
      newest().drop();
      clock.advance(1000);
      newest().onopen();
      equal(newest().sent[0].resume_token, "token2");
      equal(newest().sent[0].replay, "full");
    },

    "what the server applied is not said again, the rest once and in order": () => {
      const { clock, session, newest, open } = world();
      open();
      ["a", "b", "c"].forEach((type) => session.say({ type }));
      equal(newest().sent.slice(1).map((event) => event.client_event_seq), [1, 2, 3]);
      newest().drop();
      session.say({ type: "d" });
      clock.advance(1000);
      newest().onopen();
      newest().say(resumed("token2", 2));
      const said = newest().sent.slice(2).map((event) => [event.type, event.client_event_seq]);
      equal(said, [["c", 3], ["d", 4]]);
    },

    "a page that was loaded anew asks for what it had not played": () => {
      const { clock, session, newest } = world();
      session.resume({ id: "sess_1", token: "t", cursor: 7 });
      newest().onopen();
      const { replay, last_received_server_event_seq: cursor } = newest().sent[0];
      equal([replay, cursor], ["from_playhead", 7]);
      newest().say(resumed("token2", 41));
      session.say({ type: "a" });
      equal(newest().sent.at(-1).client_event_seq, 42);
      newest().drop();
      clock.advance(1000);
      newest().onopen();
      equal(newest().sent[0].replay, "full", "this page's player has what was read");
    },

    "skipped numbers and snapshots move the cursor; a silent hole is counted": () => {
      const { session, newest, open } = world();
      open();
      newest().say(numbered(1), { type: "session.skipped", from: 2, to: 5 }, numbered(6));
      equal([session.cursor, session.holes], [6, 0]);
      newest().say({ type: "session.snapshot", as_of_server_event_seq: 20 }, numbered(21));
      equal([session.cursor, session.holes], [21, 0]);
      newest().say(numbered(24));
      equal(session.holes, 2);
    },

    "each way in which a connection ends is told apart (case I-14)": () => {
      const ends = [
        [1000, State.ENDED],
        [1001, State.WAITING],
        [1006, State.WAITING],
        [1008, State.ENDED],
        [1009, State.WAITING],
        [1011, State.WAITING],
        [1012, State.WAITING],
        [1013, State.WAITING],
        [4001, State.ENDED],
      ];
      for (const [code, name] of ends) {
        const { session, newest, open } = world();
        open();
        newest().drop(code);
        equal(session.state.name, name, code);
      }
      const { session, newest, open } = world();
      open();
      newest().say({ type: "error", error: { code: "session_resume_expired", message: "gone" } });
      newest().drop(1008);
      equal(session.state, { name: State.ENDED, reason: "session_resume_expired", message: "gone" });
    },

    "the last event says why a session ended, whatever the socket says": () => {
      const ends = [
        [{ type: "session.closed", reason: "model_closed" }, "model_closed"],
        [{ type: "session.expired", reason: "idle_ttl_expired" }, "idle_ttl_expired"],
        [{ type: "session.replaced" }, "replaced"],
      ];
      for (const [event, reason] of ends) {
        const { session, newest, open } = world();
        open();
        newest().say(event);
        newest().drop(1006);
        equal(session.state, { name: State.ENDED, reason });
      }
    },

    "a server that accepts and drops is left alone after some attempts, further and further apart (case M-06)": () => {
      const { clock, session, sockets, states, newest, open } = world({ random: () => 1 });
      open();
      for (let n = 0; session.state.name !== State.LOST; n += 1) {
        ok(n <= MAX_ATTEMPTS, "it never stops");
        newest().drop();
        clock.advance(100000);
        newest().onopen();
        newest().say(resumed("token"));
      }
      const delays = states.filter(({ name }) => name === State.WAITING).map(({ delayMs }) => delayMs);
      equal(delays.slice(0, 6), [250, 500, 1000, 2000, 4000, 8000]);
      equal([delays.length, Math.max(...delays)], [MAX_ATTEMPTS, 8000]);
      const count = sockets.length;
      clock.advance(1000000);
      equal(sockets.length, count, "it goes on by itself");
      session.retry();
      equal(sockets.length, count + 1);
    },

    "clients that lost one server together come back apart (case M-06)": () => {
      const delays = [0, 0.3, 0.99].map((chance) => {
        const { session, newest, open } = world({ random: () => chance });
        open();
        newest().drop();
        return session.state.delayMs;
      });
      ok(delays[0] >= 125 && delays[0] < delays[1] && delays[1] < delays[2] && delays[2] <= 250, delays);
    },

    "only a connection that lived for a while earns new attempts": () => {
      const { clock, session, newest, open } = world({ random: () => 1 });
      open();
      newest().drop();
      clock.advance(250);
      newest().onopen();
      newest().say(resumed("token2"));
      clock.advance(9000);
      newest().drop();
      equal(session.state.delayMs, 500);
      clock.advance(500);
      newest().onopen();
      newest().say(resumed("token3"));
      clock.advance(10000);
      newest().drop();
      equal(session.state.delayMs, 250);
    },

    "a full server says when to come back": () => {
      const { clock, session, sockets, newest } = world();
      session.start();
      newest().onopen();
      newest().say({ type: "error", error: { code: "resource_exhausted", retry_after_ms: 3000 } });
      newest().drop(1013);
      equal(session.state, { name: State.WAITING, delayMs: 3000, reason: "resource_exhausted" });
      clock.advance(2999);
      equal(sockets.length, 1);
      clock.advance(1);
      equal(newest().url, "ws://here?duplex=1");
    },

    "starting twice opens one socket; nothing connects after the end (case N-02)": () => {
      const { clock, session, sockets, newest } = world();
      session.start();
      session.start();
      equal(sockets.length, 1);
      newest().onopen();
      newest().say(CREATED);
      newest().drop();
      session.close();
      clock.advance(100000);
      equal([sockets.length, session.state.name], [1, State.ENDED]);
    },

    "a superseded attempt cannot touch its successor (case N-02)": () => {
      const { session, sockets, events, newest, open } = world();
      open();
      session.cut(1000);
      equal(sockets[0].closedWith, 3001);
      session.retry();
      newest().onopen();
      newest().say(resumed("token2"));
      const before = events.length;
      sockets[0].say(numbered(1));
      sockets[0].drop(1006);
      equal([session.state.name, events.length], [State.OPEN, before]);
    },

    "the end of a session is said with 1000, a cut with another code": () => {
      const { session, newest, open } = world();
      open();
      session.close();
      equal(newest().closedWith, 1000);
    },

    "what is processed is acknowledged once a second, and only when it is more": () => {
      const { clock, session, newest, open } = world();
      open();
      newest().say(...[1, 2, 3].map((number) => numbered(number)));
      session.processed = 3;
      clock.advance(3000);
      const acknowledged = newest().sent.filter(({ type }) => type === "session.event_ack");
      equal(acknowledged.map((event) => event.server_event_seq), [0, 3]);
    },

    "a heartbeat every thirty seconds, and more often only when an answer is owed": () => {
      const { clock, newest, open } = world();
      open();
      const beats = () => newest().types().filter((type) => type === "session.heartbeat").length;
      clock.advance(29000);
      equal(beats(), 0);
      clock.advance(1000);
      equal(beats(), 1);
      newest().say({ type: "session.heartbeat_ack" });
      clock.advance(29000);
      equal(beats(), 1);
    },

    "a connection without a sign of life is given up": () => {
      const { clock, session, sockets, newest, open } = world();
      open();
      session.say({ type: "a" });
      clock.advance(5000);
      equal(newest().types().at(-1), "session.heartbeat");
      clock.advance(4000);
      equal(session.state.name, State.OPEN);
      clock.advance(1000);
      equal([session.state.name, sockets[0].closedWith], [State.WAITING, 3002]);
    },

    "a server that never answers the handshake is given up": () => {
      const { clock, session, newest } = world();
      session.start();
      newest().onopen();
      clock.advance(9999);
      equal(session.state.name, State.CONNECTING);
      clock.advance(1);
      equal(session.state.name, State.WAITING);
    },

    "a gap is filled from the number that the server waits for": () => {
      const { session, newest, open } = world();
      open();
      ["a", "b", "c"].forEach((type) => session.say({ type }));
      newest().say({ type: "error", error: { code: "client_event_gap", expected: 2 } });
      const said = newest().sent.slice(-2).map((event) => [event.type, event.client_event_seq]);
      equal(said, [["b", 2], ["c", 3]]);
    },

    "a server that has too much is left in peace for a moment": () => {
      const { clock, session, newest, open } = world();
      open();
      session.say({ type: "a" });
      newest().say({ type: "error", error: { code: "input_backpressure", retry_after_ms: 600 } });
      session.say({ type: "b" });
      equal(newest().types().at(-1), "a");
      clock.advance(1000);
      equal(newest().types().at(-1), "b");
    },

    "a socket that is full leaves the rest where it can be dropped": () => {
      const { clock, session, newest, open } = world();
      open();
      newest().bufferedAmount = 1e6;
      session.say({ type: "a" });
      equal(newest().types(), ["session.event_ack"]);
      newest().bufferedAmount = 0;
      clock.advance(1000);
      equal(newest().types().at(-1), "a");
    },
  };
}
