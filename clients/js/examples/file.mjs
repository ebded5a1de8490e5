// An agent that may be killed at any moment: start it again, and it goes on. Its state is in a folder.
//
//   node file.mjs [PROMPT]          the answer from its beginning; what was paid for is not bought again
//   RESUME=rest node file.mjs …     only what the killed process had not read
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { durableFetch } from '@spool-dev/client';
import OpenAI from 'openai';

const { SPOOL_URL = 'http://127.0.0.1:8787', PROVIDER = 'openai', MODEL = 'gpt-5-mini', STATE = './state', RESUME } = process.env;
const prompt = process.argv[2] ?? 'Count to one hundred, in words.';

// A store in a folder, one file a name. A file is replaced as a whole, so that a crash leaves the old one.
const path = (name) => join(STATE, encodeURIComponent(name));
const store = {
  get: (name) => readFile(path(name), 'utf8').catch((error) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  }),
  async set(name, value) {
    await mkdir(STATE, { recursive: true });
    await writeFile(`${path(name)}.new`, value);
    await rename(`${path(name)}.new`, path(name));
  },
};

const client = new OpenAI({
  baseURL: `${SPOOL_URL}/${PROVIDER}/v1`,
  fetch: durableFetch({ baseUrl: SPOOL_URL, id: 'count', store, resume: RESUME }),
});

const stream = await client.chat.completions.create({ model: MODEL, stream: true, messages: [{ role: 'user', content: prompt }] });
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? '');
