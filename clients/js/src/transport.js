import { durableBody } from './body.js';
import { durableFetch } from './fetch.js';
import { randomKey } from './key.js';
import { Run, runByKey } from './run.js';
import { understood } from './settings.js';
import { jsonEvents } from './sse.js';
import { Slot } from './state.js';

// createDurableTransport returns a transport for the AI SDK's useChat. api is the chat endpoint of your
// server, asked through a provider route of the buffer, so that the answer survives cuts and, with a store
// (default: the page's localStorage), a reload of the page.
export function createDurableTransport({ api, baseUrl, store = pageStore(), headers, body, credentials, prepareSendMessagesRequest, ...rest }) {
  // rendered on a server, where a path of the page's is no URL yet, it is made but not used
  const root = () => (baseUrl ?? new URL(api, globalThis.location?.href).origin).replace(/\/+$/, '');

  async function sendMessages({ chatId, messages, trigger, messageId, metadata, abortSignal, headers: more, body: extra }) {
    const asked = { id: chatId, messages, trigger, messageId, requestMetadata: metadata };
    const base = { ...(await value(body)), ...extra };
    const own = { ...plain(await value(headers)), ...plain(more) };
    const prepared = await prepareSendMessagesRequest?.({ ...asked, api, body: base, headers: own, credentials });
    const send = durableFetch({ ...rest, baseUrl, store, id: `chat:${chatId}`, key: randomKey, cancel: 'run', generates: () => true });
    const response = await send(prepared?.api ?? api, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...plain(prepared?.headers ?? own) },
      body: JSON.stringify(prepared?.body ?? { ...base, id: chatId, messages, trigger, messageId }),
      credentials: prepared?.credentials ?? credentials,
      signal: abortSignal,
    });
    if (!response.ok) throw new Error((await response.text()) || `status ${response.status}`);
    return response.body.pipeThrough(jsonEvents());
  }

  // reconnectToStream gives the whole answer of a run that is still live, or null.
  async function reconnectToStream({ chatId, abortSignal, headers: more }) {
    const slot = new Slot(store, `chat:${chatId}`);
    const kept = await slot.load();
    if (!kept) return null;
    const settings = understood({ ...rest, cancel: 'run' });
    const asked = new Headers({ ...plain(await value(headers)), ...plain(more) });
    const call = { root: root(), init: credentials ? { credentials } : {}, headers: asked, signal: abortSignal, key: kept.key };
    const id = kept.run || await runByKey(call, settings);
    if (!id) return null;
    const run = new Run({ ...call, id }, settings);
    const line = await run.live();
    if (!line) return null;
    await slot.note({ key: kept.key, run: id });
    return durableBody(line, run, slot).pipeThrough(jsonEvents());
  }

  return { resumeStreamIsReplay: true, sendMessages, reconnectToStream };
}

// pageStore is the page's localStorage; on a server, or where the page may not have one, a map.
function pageStore() {
  try {
    return globalThis.window?.localStorage ?? new Map();
  } catch {
    return new Map();
  }
}

const value = async (given) => (typeof given === 'function' ? given() : given);

const plain = (headers) => Object.fromEntries(new Headers(headers ?? {}));
