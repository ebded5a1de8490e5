// An agent that may be killed at any moment: it prints the answer of one SDK as it comes, and keeps its
// state in a folder. node agent.mjs CLIENT BASE SPOOL MODEL FOLDER [whole|rest]
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { durableFetch } from '../../../clients/js/src/index.js';

const [client, base, baseUrl, model, folder, resume] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const path = (name) => join(folder, encodeURIComponent(name));
const store = {
  get(name) {
    try {
      return readFileSync(path(name), 'utf8');
    } catch {
      return null; // nothing was kept
    }
  },
  set(name, value) {
    writeFileSync(`${path(name)}.new`, value);
    renameSync(`${path(name)}.new`, path(name));
  },
};

const { run } = await import(`./clients/${client}.mjs`);
const fetch = durableFetch({ baseUrl, id: 'count', store, resume });
const seen = { add({ text = '' }) { process.stdout.write(text ?? ''); } };
await run(base, { prompt: 'slowly', model, retries: 0, fetch, seen });
process.exit();
