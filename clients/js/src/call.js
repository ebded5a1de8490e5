// What the SDK asks for, and whether it is a call that generates.

const generation = /(\/chat\/completions|\/completions|\/responses|\/messages|:generateContent|:streamGenerateContent|\/converse|\/converse-stream|\/invoke|\/invoke-with-response-stream|\/api\/chat|\/api\/generate)\/?$/;

const generatesByPath = ({ pathname }) => generation.test(pathname);

// understand returns the call in a form that can be sent again, or null for a request that is not for the
// buffer: another host, another path, another method. sent are its headers, headers those of what is
// asked about its run, init what else each of these requests is made with.
export async function understand(input, init, { baseUrl, generates = generatesByPath }) {
  const request = typeof input === 'object' && 'url' in input ? input : null;
  const method = init.method ?? request?.method ?? 'GET';
  if (method.toUpperCase() !== 'POST') return null;
  const url = new URL(request?.url ?? input, globalThis.location?.href);
  const root = rootOf(url, baseUrl);
  if (root === null || !generates(url)) return null;

  const sent = new Headers(init.headers ?? request?.headers);
  const body = await bytesOf(init.body ?? await request?.arrayBuffer() ?? '', sent); // not every browser has Request.body
  sent.set('x-buffer-heartbeat', 'off'); // heartbeats are no bytes of the run
  const signal = init.signal ?? request?.signal ?? undefined;
  return { target: request ?? url.href, url, root, sent, headers: forReads(sent, url), body, init: lasting(request, init), signal };
}

// rootOf is the buffer's root where the URL is below it, else null. Without a base URL every call is
// taken to go to a buffer at the root of its host.
function rootOf(url, baseUrl) {
  if (!baseUrl) return url.origin;
  const base = new URL(baseUrl, globalThis.location?.href);
  const path = base.pathname.replace(/\/+$/, '');
  return url.origin === base.origin && url.pathname.startsWith(`${path}/`) ? base.origin + path : null;
}

// lasting is what each request of the call has in common, less all that is held or sent apart from it.
function lasting(request, { method: _, headers: __, body: ___, signal: ____, duplex: _____, ...rest }) {
  return request?.credentials ? { credentials: request.credentials, ...rest } : rest;
}

// bytesOf turns any body into one that can be sent twice. A string stays one.
async function bytesOf(body, headers) {
  if (typeof body === 'string') return body;
  const carrier = new Response(body);
  const type = carrier.headers.get('content-type');
  if (type && !headers.has('content-type')) headers.set('content-type', type);
  return new Uint8Array(await carrier.arrayBuffer());
}

// Of the call's own headers those of its body, of its SDK and of its steering mean nothing to
// the buffer's other routes; all else may be a credential or what a gateway asks for.
const notForReads = /^(content-.*|accept.*|idempotency-key|x-stainless-.*|x-buffer-(?!key$).*|x-provider-key|anthropic-(version|beta)|openai-beta)$/;

// forReads are the headers for requests about the call's run. The key that Gemini's clients put in the URL
// becomes a header: on these routes `key` in a URL is another thing.
function forReads(sent, url) {
  const kept = new Headers([...sent].filter(([name]) => !notForReads.test(name)));
  const key = url.searchParams.get('key');
  if (key && !kept.has('authorization') && !kept.has('x-goog-api-key')) kept.set('x-goog-api-key', key);
  return kept;
}
