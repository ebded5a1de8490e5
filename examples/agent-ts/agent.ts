// An agent that may be killed at any moment: start it again in the same folder, and it goes on. What was
// bought once is not bought again, and what a tool did is not done again.
//
//   npm ci && npm run build
//   node dist/agent.js [BASE] [FOLDER] [PROMPT]
import { randomUUID } from 'node:crypto';
import { appendFile, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DurableError, durableFetch } from '@spool-dev/client';
import { read, type Message } from './chat.js';

const [base = 'http://127.0.0.1:8787', folder = './state', prompt = 'Book a flight and a hotel in Lisbon.'] = process.argv.slice(2);
const model = process.env.MODEL ?? 'gpt-5-mini';
const limit = 10; // calls of a turn, and parts in which one of them may be bought

// All that the agent has to remember: what was said, and which call comes next.
interface State {
  operation: string; // names the user's action in every key
  step: number; // the call that comes next, from 1
  part: number; // of that call, from 1: more than one where a run was interrupted
  done: boolean;
  messages: Message[];
}

const tools = [{
  type: 'function',
  function: {
    name: 'book',
    description: 'Books something.',
    parameters: { type: 'object', properties: { what: { type: 'string' } }, required: ['what'] },
  },
}];

// A store in a folder, one file a name. A file is replaced as a whole, so that a crash leaves the old one.
const store = {
  get: (name: string) => contents(encodeURIComponent(name)),
  async set(name: string, value: string) {
    const path = join(folder, encodeURIComponent(name));
    await writeFile(`${path}.new`, value);
    await rename(`${path}.new`, path);
  },
};

async function contents(name: string): Promise<string | null> {
  try {
    return await readFile(join(folder, name), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

// load reads the state, or begins a new one and saves it before anything is bought.
async function load(): Promise<State> {
  const kept = await store.get('agent.json');
  if (kept) return JSON.parse(kept);
  const state = { operation: randomUUID(), step: 1, part: 1, done: false, messages: [{ role: 'user', content: prompt }] };
  await save(state);
  return state;
}

const save = (state: State) => store.set('agent.json', JSON.stringify(state));

// book stands for a service that takes an idempotency key and does nothing the second time. Its world is
// a file with a line for each effect.
async function book(key: string, effect: string): Promise<string> {
  const done = (await contents('ledger.txt')) ?? '';
  if (!done.split('\n').some((line) => line.startsWith(`${key}\t`))) {
    await appendFile(join(folder, 'ledger.txt'), `${key}\t${effect}\n`);
  }
  return 'booked';
}

await mkdir(folder, { recursive: true });
const state = await load();
const fetch = durableFetch({ baseUrl: base, id: state.operation, store });
const headers = {
  'content-type': 'application/json',
  'x-buffer-operation': state.operation,
  ...(process.env.OPENAI_API_KEY ? { authorization: `Bearer ${process.env.OPENAI_API_KEY}` } : {}),
};

// ask makes the call with this key. Made again after a crash, it has the same body, and is answered from the log.
async function ask(key: string): Promise<Message> {
  const response = await fetch(`${base}/openai/v1/chat/completions`, {
    method: 'POST',
    headers: { ...headers, 'idempotency-key': key },
    body: JSON.stringify({ model, stream: true, messages: state.messages, tools }),
  });
  if (!response.ok) throw new Error(`status ${response.status}: ${await response.text()}`);
  return (await read(response)).message;
}

// prefix is what is stored of the interrupted run with this key. Its answer breaks off after its last event, and
// must not be taken for whole where it broke off before.
async function prefix(key: string): Promise<Message> {
  const response = await fetch(`${base}/resume?key=${encodeURIComponent(key)}&from=0&follow=0`, { headers });
  if (!response.ok) throw new Error(`status ${response.status}: ${await response.text()}`);
  const { message, events } = await read(response, true);
  if (events < Number(response.headers.get('x-buffer-next'))) throw new Error(`cut after ${events} events; start again`);
  return message;
}

// A crash before a save leaves the state of the step before: the call is made again with its key, and is
// the same run; the tools run again with theirs, and do nothing.
while (!state.done) {
  if (state.step > limit || state.part > limit) throw new Error(`no end after ${limit} calls`);
  const key = `${state.operation}:${state.step}${state.part > 1 ? `:${state.part}` : ''}`;
  try {
    const answer = await ask(key);
    state.messages.push(answer);
    for (const { id, function: { name, arguments: given } } of answer.tool_calls ?? []) {
      state.messages.push({ role: 'tool', tool_call_id: id, content: await book(`${state.operation}:${id}`, `${name} ${given}`) });
    }
    state.done = !answer.tool_calls;
    Object.assign(state, { step: state.step + 1, part: 1 });
  } catch (error) {
    // The buffer itself died, and the run with it. What is stored of it is a partial answer, and another call goes
    // on from there. Of a tool call nothing is taken: half of one is none.
    if (!(error instanceof DurableError) || !['owner_lost', 'shutdown'].includes(error.reason)) throw error;
    const { content } = await prefix(key);
    if (content) state.messages.push({ role: 'assistant', content });
    state.part++;
  }
  await save(state);
}
console.log(state.messages.at(-1)?.content);
