// The npm package `openai` in Node: prints what its user sees of five conversations, a JSON object a line.
//
// Owns: using its `OpenAIRealtimeWS` as its documentation shows it.
// Does not own: what must be seen (`test_real_clients.py`).
// Here because: it speaks TLS only, whatever its base URL says, so it is served by TLS.
import { readFileSync } from "node:fs";
import { once } from "node:events";
import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";

const HEADER = 44; // of a WAV file with nothing but sound in it
const FRAME = 4800;
const [url, recording, ...names] = process.argv.slice(2);
const speech = readFileSync(recording).subarray(HEADER);
const padded = Buffer.concat([speech, Buffer.alloc(48_000)]);
const transcription = { model: "gpt-4o-transcribe" };
const weather = {
  type: "function",
  name: "weather",
  description: "The weather in a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

class Talk {
  constructor(name, rt) {
    this.saw = (what, more = {}) => console.log(JSON.stringify({ scenario: name, saw: what, ...more }));
    this.rt = rt;
    rt.on("error", (error) => this.saw("error", { message: error.message }));
    rt.on("response.output_audio.delta", ({ delta }) => this.saw("audio", { pcm: delta }));
    rt.on("response.output_text.done", ({ text }) => this.saw("text", { text }));
    rt.on("response.output_audio_transcript.done", ({ transcript }) => this.saw("text", { text: transcript }));
    rt.on("conversation.item.input_audio_transcription.completed", ({ transcript }) =>
      this.saw("heard", { text: transcript }));
    rt.on("response.function_call_arguments.done", (call) =>
      this.saw("tool", { name: call.name, arguments: call.arguments }));
    rt.on("response.done", ({ response }) => response.status === "cancelled" && this.saw("interrupted"));
  }

  /** The next event of this type after now. */
  next(type) {
    return new Promise((resolve) => this.rt.once(type, resolve));
  }

  async configure(session) {
    const updated = this.next("session.updated");
    this.rt.send({ type: "session.update", session: { type: "realtime", ...session } });
    await updated;
  }

  create(item) {
    this.rt.send({ type: "conversation.item.create", item });
    this.rt.send({ type: "response.create" });
  }

  write(text) {
    this.create({ type: "message", role: "user", content: [{ type: "input_text", text }] });
  }

  speak(pcm) {
    for (let start = 0; start < pcm.length; start += FRAME) {
      const audio = pcm.subarray(start, start + FRAME).toString("base64");
      this.rt.send({ type: "input_audio_buffer.append", audio });
    }
  }
}

const SCENARIOS = {
  async text(talk) {
    await talk.configure({ output_modalities: ["text"] });
    const done = talk.next("response.done");
    talk.write("Hello.");
    await done;
  },
  /** Without a detector: the program says when a turn ends. */
  async audio(talk) {
    await talk.configure({ audio: { input: { turn_detection: null, transcription } } });
    const done = talk.next("response.done");
    talk.speak(speech);
    talk.rt.send({ type: "input_audio_buffer.commit" });
    talk.rt.send({ type: "response.create" });
    await done;
  },
  /** The server finds out when the turn ends, and that the answer is talked over. */
  async vad(talk) {
    await talk.configure({ audio: { input: { turn_detection: { type: "server_vad" }, transcription } } });
    const begun = talk.next("response.output_audio.delta");
    talk.speak(padded);
    await begun;
    const cancelled = talk.next("response.done");
    talk.speak(padded);
    await cancelled;
    await talk.next("response.done");
  },
  async tools(talk) {
    await talk.configure({ tools: [weather] });
    const called = talk.next("response.done");
    talk.write("What is the weather in Paris?");
    const { call_id } = (await called).response.output[0];
    const done = talk.next("response.done");
    talk.create({ type: "function_call_output", call_id, output: "sunny" });
    await done;
  },
  async cancel(talk) {
    await talk.configure({});
    const begun = talk.next("response.output_audio.delta");
    talk.write("Tell me a story.");
    await begun;
    const cancelled = talk.next("response.done");
    talk.rt.send({ type: "response.cancel" });
    await cancelled;
    talk.saw("again");
    const done = talk.next("response.done");
    talk.write("Hello.");
    await done;
  },
};

const baseURL = url.replace("wss:", "https:").replace("/realtime", "");
for (const name of names) {
  const rt = new OpenAIRealtimeWS({ model: "gpt-realtime" }, new OpenAI({ apiKey: "unused", baseURL }));
  const talk = new Talk(name, rt);
  await once(rt.socket, "open");
  await SCENARIOS[name](talk);
  rt.close();
}
