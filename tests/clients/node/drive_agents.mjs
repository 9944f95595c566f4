// `@openai/agents-realtime` in Node: prints what its user sees, a JSON object a line.
import { readFileSync } from "node:fs";
import * as sdk from "@openai/agents-realtime";
import { talk } from "./agents_talk.mjs";

const HEADER = 44; // of a WAV file with nothing but sound in it
const [url, recording, ...names] = process.argv.slice(2);
const speech = new Uint8Array(readFileSync(recording)).slice(HEADER);
const say = (seen) => console.log(JSON.stringify(seen));
await talk(sdk, { Transport: sdk.OpenAIRealtimeWebSocket, url, key: "unused", speech, names, say });
