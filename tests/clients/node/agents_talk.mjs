// `@openai/agents-realtime`: what its user sees of five conversations. The same in Node and in a browser.
//
// Owns: using its `RealtimeSession` as its documentation shows it.
// Does not own: where it runs and how it is told to the test (`drive_agents.mjs`, `browser/page.html`), what must
// be seen (`test_real_clients.py`).
// Here because: the package chooses other code in a browser, and both must work.

const STORY = "Tell me a story.";
const FRAME = 4800;

/** One session and what is seen on it. `sdk` is the package, `say` takes what is seen. */
class Talk {
  constructor(sdk, transport, name, speech, say) {
    this.speech = speech;
    this.name = name;
    this.saw = (what, more = {}) => say({ scenario: name, saw: what, ...more });
    this.waiting = [];
    this.session = new sdk.RealtimeSession(agent(sdk, name), { transport, config: config(name), model: "gpt-realtime" });
    this.session.on("error", ({ error }) => this.saw("error", { message: JSON.stringify(error) ?? String(error) }));
    this.session.on("audio", ({ data }) => this.happened("audio", { pcm: base64(new Uint8Array(data)) }));
    this.session.on("audio_interrupted", () => this.saw("interrupted"));
    this.session.on("agent_tool_start", (_context, _agent, tool, { toolCall }) =>
      this.saw("tool", { name: tool.name, arguments: toolCall.arguments }));
    this.session.on("transport_event", (event) => this.transportEvent(event));
  }

  transportEvent(event) {
    switch (event.type) {
      case "response.output_text.done":
        return this.saw("text", { text: event.text });
      case "response.output_audio_transcript.done":
        return this.saw("text", { text: event.transcript });
      case "conversation.item.input_audio_transcription.completed":
        return this.saw("heard", { text: event.transcript });
      case "output_audio_buffer.started": // by WebRTC, where the sound is on a track
        return this.happened("audio", { pcm: "" });
      case "output_audio_buffer.stopped":
        return this.happened("stopped");
      case "response.done":
        return this.happened("done", { status: event.response.status });
    }
  }

  happened(what, more) {
    this.saw(what, more);
    this.waiting = this.waiting.filter(({ kind, resolve }) => kind !== what || resolve());
  }

  /** Until something like this is seen after now. */
  next(kind) {
    return new Promise((resolve) => this.waiting.push({ kind, resolve }));
  }

  speak(bytes) {
    for (let start = 0; start < bytes.length; start += FRAME)
      this.session.sendAudio(bytes.slice(start, start + FRAME).buffer);
  }
}

function agent(sdk, name) {
  const weather = sdk.tool({
    name: "weather",
    description: "The weather in a city.",
    strict: false,
    parameters: {
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
      additionalProperties: false,
    },
    execute: async () => "sunny",
  });
  const tools = name === "tools" ? [weather] : [];
  return new sdk.RealtimeAgent({ name: "friend", instructions: "Be brief.", tools });
}

function config(name) {
  const detecting = name === "vad" || name === "microphone";
  const turnDetection = detecting ? { type: "server_vad", interruptResponse: true } : null;
  return {
    outputModalities: [name === "text" ? "text" : "audio"],
    audio: { input: { turnDetection, transcription: { model: "gpt-4o-transcribe" } } },
  };
}

const withSilence = (speech) => {
  const padded = new Uint8Array(speech.length + 48_000);
  padded.set(speech);
  return padded;
};

const base64 = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));

const SCENARIOS = {
  async text(talk) {
    const done = talk.next("done");
    talk.session.sendMessage("Hello.");
    await done;
  },
  /** Without a detector: the program says when a turn ends. */
  async audio(talk) {
    const done = talk.next("done");
    talk.speak(talk.speech);
    talk.session.sendAudio(new ArrayBuffer(0), { commit: true });
    talk.session.transport.requestResponse();
    await done;
  },
  /** The server finds out when the turn ends, and that the answer is talked over. */
  async vad(talk) {
    const begun = talk.next("audio");
    talk.speak(withSilence(talk.speech));
    await begun;
    const cancelled = talk.next("done");
    talk.speak(withSilence(talk.speech));
    await cancelled;
    await talk.next("done");
  },
  /** The browser's microphone speaks, by WebRTC. What it plays of the answer is measured. */
  async microphone(talk) {
    await talk.next("stopped");
    const stats = await talk.session.transport.connectionState.peerConnection.getStats();
    const played = [...stats.values()].find(({ type, kind }) => type === "inbound-rtp" && kind === "audio");
    talk.saw("played", { energy: played.totalAudioEnergy });
  },
  async tools(talk) {
    const called = talk.next("done");
    talk.session.sendMessage("What is the weather in Paris?");
    await called;
    await talk.next("done");
  },
  async cancel(talk) {
    const begun = talk.next("audio");
    talk.session.sendMessage(STORY);
    await begun;
    const cancelled = talk.next("done");
    talk.session.interrupt();
    await cancelled;
    talk.saw("again");
    await SCENARIOS.text(talk);
  },
};

/** Each of the named conversations, on a session of its own over `new Transport()`. */
export async function talk(sdk, { Transport, url, key, speech, names, say }) {
  sdk.setTracingDisabled?.(true);
  for (const name of names) {
    const conversation = new Talk(sdk, new Transport(), name, speech, say);
    await conversation.session.connect({ apiKey: key, url: `${url}?model=gpt-realtime` });
    await SCENARIOS[name](conversation);
    conversation.session.close();
  }
}
