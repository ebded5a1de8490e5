// What unmodified SDKs do besides reading: node calls.mjs ROOT. They leave in mid-answer, and they repeat a
// call under a key that each is given by its own means. Its output is JSON, one {name, got} a line.
import Anthropic from '@anthropic-ai/sdk';
import { createOpenAI } from '@ai-sdk/openai';
import { GoogleGenAI } from '@google/genai';
import { streamText } from 'ai';
import OpenAI from 'openai';

const root = process.argv[2];
const base = `${root}/emu`;
const tell = (name, got) => console.log(JSON.stringify({ name, got }));
const messages = [{ role: 'user', content: 'slowly' }];

// Each begins a slow answer with some headers of its own, and leaves when it has seen two events of it.
const callers = {
  async openai(headers) {
    const client = new OpenAI({ apiKey: 'k', baseURL: `${base}/v1` });
    await breakOff(await client.chat.completions.create({ model: 'lab-left-openai', stream: true, messages }, { headers }));
  },
  async anthropic(headers) {
    const client = new Anthropic({ apiKey: 'k', baseURL: base });
    await breakOff(await client.messages.create({ model: 'claude-left', max_tokens: 64, stream: true, messages }, { headers }));
  },
  async genai(headers) {
    const leave = new AbortController(); // the SDK reads on when its loop is left
    const client = new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: base } });
    const config = { httpOptions: { headers }, abortSignal: leave.signal };
    await breakOff(await client.models.generateContentStream({ model: 'gemini-2.5-flash-left', contents: 'slowly', config }));
    leave.abort();
  },
  async ai(headers) {
    const leave = new AbortController();
    const model = createOpenAI({ apiKey: 'k', baseURL: `${base}/v1` }).chat('lab-left-ai');
    const { textStream } = streamText({ model, prompt: 'slowly', headers, abortSignal: leave.signal, onError() {} });
    await breakOff(textStream);
    leave.abort();
  },
};

async function breakOff(stream) {
  let seen = 0;
  for await (const _ of stream) if (++seen === 2) break;
}

// ended waits until the run of an operation has ended, and returns it.
async function ended(operation) {
  for (;;) {
    const { runs } = await (await fetch(`${root}/runs?limit=200`, { headers: { authorization: 'Bearer k' } })).json();
    const [run, ...others] = runs.filter((each) => each.operation === operation);
    if (others.length > 0) throw new Error(`${operation}: ${others.length + 1} runs`);
    if (run?.ended) return run;
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
}

async function perform(name, call) {
  await call({ 'x-buffer-on-disconnect': 'cancel', 'x-buffer-operation': `${name} cancels` });
  tell(`${name} cancels`, (await ended(`${name} cancels`)).state);

  await call({ 'idempotency-key': `${name}-key`, 'x-buffer-operation': `${name} repeats` });
  await call({ 'idempotency-key': `${name}-key` });
  const { state, saved } = await ended(`${name} repeats`);
  tell(`${name} repeats`, { state, saved: saved.attaches + saved.replays });
}

await Promise.all(Object.entries(callers).map(([name, call]) => perform(name, call)));
process.exit();
