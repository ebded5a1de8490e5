// What our client does at a real buffer besides reading: node live.mjs ROOT. Its output is JSON, one
// {name, got} a line.
import { AbstractChat } from 'ai';
import { EventSource } from 'eventsource';
import OpenAI from 'openai';
import { createDurableTransport, durableFetch, followRun } from '../../../clients/js/src/index.js';

const root = process.argv[2];
const authorization = 'Bearer k';
const tell = (name, got) => console.log(JSON.stringify({ name, got }));
const about = async (run) => (await fetch(`${root}/runs/${run}`, { headers: { authorization } })).json();

// call starts a slow answer, reads two events of it and returns its stream and its run.
async function call(options) {
  let run;
  const inner = durableFetch({ baseUrl: root, ...options });
  const watch = async (...args) => {
    const response = await inner(...args);
    run = response.headers.get('x-buffer-run-id');
    return response;
  };
  const client = new OpenAI({ apiKey: 'k', baseURL: `${root}/emu/v1`, fetch: watch });
  const stream = await client.chat.completions.create({ model: 'lab-live', stream: true, messages: [{ role: 'user', content: 'slowly' }] });
  const events = stream[Symbol.asyncIterator]();
  await events.next();
  await events.next();
  return { stream, events, run };
}

// ended waits until the run has ended, and returns its state.
async function ended(run) {
  for (;;) {
    const { state } = await about(run);
    if (!['idle', 'streaming'].includes(state)) return state;
    await new Promise((resolve) => { setTimeout(resolve, 10); });
  }
}

for (const cancel of ['run', 'reader']) {
  const { stream, events, run } = await call({ cancel });
  stream.controller.abort();
  const { done } = await events.next(); // the SDK ends quietly when it was told to stop
  tell(`abort of the ${cancel}`, { done, state: await ended(run) });
}

{
  const { run, events } = await call({});
  const seen = [];
  const state = await new Promise((resolve) => {
    followRun(`${root}/runs/${run}/events`, {
      EventSource: class extends EventSource {
        constructor(url) { super(url, { fetch: (input, init) => fetch(input, { ...init, headers: { ...init.headers, authorization } }) }); }
      },
      onData: (data) => seen.push(data),
      onEnd: (end) => resolve(end.state),
    });
  });
  const text = seen.filter((data) => data !== '[DONE]').map((data) => JSON.parse(data).choices[0]?.delta?.content ?? '').join('');
  tell('a page that follows', { state, text });
  await events.return();
}

// Chat is what useChat is without React.
class Chat extends AbstractChat {
  constructor(init) {
    const state = {
      status: 'ready', error: undefined, messages: [],
      pushMessage(message) { this.messages = [...this.messages, message]; },
      popMessage() { this.messages = this.messages.slice(0, -1); },
      replaceMessage(index, message) { this.messages = this.messages.with(index, message); },
      snapshot: (value) => structuredClone(value),
    };
    super({ ...init, state });
  }
  text() { return this.messages.at(-1).parts.map(({ text }) => text ?? '').join(''); }
}

{
  const store = new Map();
  const transport = () => createDurableTransport({ api: `${root}/page/chat`, store, headers: { authorization } });
  const first = new Chat({ id: 'c', transport: transport() });
  const sent = first.sendMessage({ text: 'hi' });
  while (first.messages.at(-1)?.role !== 'assistant' || !first.text()) await new Promise((resolve) => { setTimeout(resolve, 5); });
  const reloaded = new Chat({ id: 'c', transport: transport(), messages: [] });
  await reloaded.resumeStream();
  await sent;
  tell('a chat', { sent: first.text(), reloaded: reloaded.text(), status: reloaded.status, nothing: await transport().reconnectToStream({ chatId: 'c' }) });
}
process.exit();
