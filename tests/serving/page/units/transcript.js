async (load) => {
  const { Transcript, Words } = await load("transcript.js");

  function world() {
    const removed = [];
    const transcript = new Transcript({ onChange: () => {}, onRemove: (id) => removed.push(id) });
    return { transcript, removed };
  }

  const { heardChars } = await load("transcript.js");
  const answer = (id = "i1") => ({
    type: "conversation.item.added",
    item: { id, type: "message", role: "assistant", content: [] },
  });
  const text = (delta) => ({
    type: "response.output_audio_transcript.delta",
    response_id: "r1",
    item_id: "i1",
    delta,
  });
  const audio = (ms, ...marks) => ({
    type: "response.output_audio.delta",
    response_id: "r1",
    item_id: "i1",
    duplex: {
      audio_duration_ms: ms,
      audio_text_marks: marks.map(([audio_ms, text_chars]) => ({ audio_ms, text_chars })),
    },
  });
  const done = (status, details = null) => ({
    type: "response.done",
    response: { id: "r1", status, status_details: details },
  });
  const shown = ({ text: all, ...entry }) => all.slice(0, heardChars({ text: all, ...entry }));
  const played = (playedMs, isOver = false) => ({ itemId: "i1", playedMs, isOver });

  return {
    "words appear as heard when they are heard": () => {
      const { transcript } = world();
      const say = (event) => transcript.handle(event);
      say(answer());
      say(text("One two. "));
      say(audio(1000, [1000, 9]));
      say(text("Three four."));
      say(audio(1000, [2000, 20]));
      equal(shown(transcript.entries[0]), "");
      transcript.played(played(1000));
      equal(shown(transcript.entries[0]), "One two. ");
      transcript.played(played(1500));
      equal(shown(transcript.entries[0]), "One two. Three");
      transcript.played(played(2000, true));
      equal(shown(transcript.entries[0]), "One two. Three four.");
    },

    "an interruption leaves whole words, and what the server says was heard": () => {
      const { transcript } = world();
      [answer(), text("One two three"), audio(1300, [1300, 13])].forEach((event) => transcript.handle(event));
      transcript.played(played(1100));
      transcript.handle(done("cancelled", { reason: "turn_detected" }));
      equal(shown(transcript.entries[0]), "One two ");
      transcript.handle({ type: "playback.acknowledged", item_id: "i1", playback: { committed_ms: 500 } });
      equal([transcript.entries[0].cutMs, shown(transcript.entries[0])], [500, "One "]);
    },

    "a cut after the end of a response is one too": () => {
      const { transcript } = world();
      [answer(), text("One two three"), audio(1300, [1300, 13]), done("completed")].forEach((event) =>
        transcript.handle(event),
      );
      transcript.handle({ type: "conversation.item.truncated", item_id: "i1", audio_end_ms: 700 });
      equal(transcript.entries[0].cutMs, 700);
    },

    "without marks text goes in proportion; what is not spoken is read at once": () => {
      const { transcript } = world();
      [answer(), text("abcdefghij"), audio(1000)].forEach((event) => transcript.handle(event));
      transcript.played(played(500));
      equal(shown(transcript.entries[0]), "abcde");
      const silent = world().transcript;
      [answer(), text("abc")].forEach((event) => silent.handle(event));
      equal(shown(silent.entries[0]), "abc");
    },

    "a user's words come when they come": () => {
      const { transcript } = world();
      const say = (type, more) => transcript.handle({ type, item_id: "u1", ...more });
      const words = () => transcript.entries.map((entry) => [entry.text, entry.words]);
      say("input_audio_buffer.speech_started");
      equal(words(), [["", Words.LISTENING]]);
      say("input_audio_buffer.speech_stopped");
      say("conversation.item.input_audio_transcription.delta", { delta: "he" });
      equal(words(), [["he", Words.AWAITED]]);
      say("conversation.item.input_audio_transcription.completed", { transcript: "hello" });
      equal(words(), [["hello", Words.KNOWN]]);
    },

    "speech that became no turn leaves no trace": () => {
      const { transcript, removed } = world();
      transcript.handle({ type: "input_audio_buffer.speech_started", item_id: "u1" });
      transcript.handle({ type: "input_audio_buffer.speech_started", item_id: "u2" });
      equal(removed, ["u1"]);
      transcript.handle({ type: "input_audio_buffer.cleared" });
      equal(transcript.entries, []);
    },

    "a snapshot replaces everything": () => {
      const { transcript } = world();
      transcript.typed("u1", "old");
      const content = [{ type: "input_text", text: "new" }];
      const items = [{ id: "u2", type: "message", role: "user", content }];
      transcript.handle({ type: "session.snapshot", conversation: { items } });
      equal(transcript.entries.map((entry) => entry.text), ["new"]);
    },

    "a failure says so": () => {
      const { transcript } = world();
      [answer(), text("a"), done("failed", { error: { code: "model_timeout" } })].forEach((event) =>
        transcript.handle(event),
      );
      equal(transcript.entries[0].failure, "model_timeout");
    },

    "it survives being stored": () => {
      const { transcript } = world();
      [answer(), text("One two"), audio(700, [700, 7])].forEach((event) => transcript.handle(event));
      const later = world().transcript;
      later.restore(JSON.parse(JSON.stringify(transcript.entries)));
      equal(later.entries, transcript.entries);
    },
  };
}
