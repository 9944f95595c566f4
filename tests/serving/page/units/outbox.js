async (load) => {
  const { MAX_WAITING_MS, Outbox } = await load("outbox.js");

  const speech = (n) => ({ type: "audio", n });

  function taken(outbox) {
    const events = [];
    for (let event = outbox.take(); event; event = outbox.take()) events.push(event);
    return events;
  }

  return {
    "numbers are dense and given when an event leaves": () => {
      const outbox = new Outbox();
      outbox.put({ type: "a" });
      outbox.put({ type: "b" });
      equal(taken(outbox).map(({ type, client_event_seq: n }) => [type, n]), [["a", 1], ["b", 2]]);
      equal(outbox.take(), null);
    },

    "of speech that waits the newest two seconds stay, and the rest is reported (case N-03)": () => {
      let lostMs = 0;
      const outbox = new Outbox((ms) => (lostMs += ms));
      outbox.put({ type: "text" });
      for (let n = 0; n < 250; n += 1) outbox.put(speech(n), 20);
      equal(lostMs, 5000 - MAX_WAITING_MS);
      const events = taken(outbox);
      equal(events[0].type, "text");
      equal(events.slice(1).map(({ n }) => n), Array.from({ length: 100 }, (_, i) => 150 + i));
      equal(events.map((event) => event.client_event_seq), Array.from({ length: 101 }, (_, i) => i + 1));
    },

    "speech that was sent is kept for a resume, beside what waits (case N-03)": () => {
      let lostMs = 0;
      const outbox = new Outbox((ms) => (lostMs += ms));
      for (let n = 0; n < 50; n += 1) outbox.put(speech(n), 20);
      taken(outbox);
      for (let n = 50; n < 150; n += 1) outbox.put(speech(n), 20);
      outbox.rewind(31);
      equal(taken(outbox).map(({ n }) => n), Array.from({ length: 120 }, (_, i) => 30 + i));
      equal(lostMs, 0);
    },

    "what is acknowledged is forgotten": () => {
      const outbox = new Outbox();
      for (let n = 0; n < 5; n += 1) outbox.put(speech(n), 20);
      taken(outbox);
      ok(outbox.awaits, "nothing is awaited");
      equal(outbox.speechMs, 100);
      outbox.acknowledge(4);
      equal(outbox.speechMs, 20);
      outbox.acknowledge(5);
      ok(!outbox.awaits, "something is awaited");
    },

    "numbering goes on where the server is": () => {
      const outbox = new Outbox();
      outbox.rewind(42);
      outbox.put({ type: "a" });
      equal(outbox.take().client_event_seq, 42);
    },
  };
}
