/** A store for the state: a `Map`, a client of Redis or Deno KV behind two functions, `localStorage`, a file. */
export type Store = ValueStore | ItemStore;

export interface ValueStore {
  get(name: string): string | null | undefined | Promise<string | null | undefined>;
  set(name: string, value: string): unknown;
}

export interface ItemStore {
  getItem(name: string): string | null | Promise<string | null>;
  setItem(name: string, value: string): unknown;
}

/** What a store holds under `spool:` and the operation's id, as JSON. */
export interface State {
  /** The call's idempotency key. */
  key: string;
  /** The run's id; empty until the answer has begun. */
  run: string;
  /** The position of the first chunk that was not read whole. */
  position: number;
  /** The byte offset in the run where that chunk begins. */
  bytes: number;
}

/** A call, as far as its key may depend on it. */
export interface Call {
  url: URL;
  headers: Headers;
  body: string | Uint8Array;
}

export interface Retry {
  /** How many tries in a row may gain nothing; default 12, about 50 s. */
  tries?: number;
  /** About the first pause in ms; each one doubles, less a random part; default 250. */
  base?: number;
  /** The longest pause in ms, but for a `Retry-After`; default 10 000. */
  cap?: number;
  /** The longest `Retry-After` in ms that is waited for; default 120 000. */
  longest?: number;
}

/** How answers are repaired. */
export interface RepairOptions {
  /** The fetch below; default the global one. */
  fetch?: typeof globalThis.fetch;
  retry?: Retry;
  /** After how many ms without a byte a connection is as good as cut; default 60 000, 0 for never. */
  idle?: number;
}

export interface DurableFetchOptions extends RepairOptions {
  /**
   * The buffer's root, such as `http://buffer:8787`: what is not below it passes through untouched.
   * Without it every generation call is taken to go to a buffer at the root of its host.
   */
  baseUrl?: string | URL;
  /** The call's key. An `Idempotency-Key` among its headers outranks it. Default: one of the id, else a new one. */
  key?: string | ((call: Call) => string | undefined | Promise<string | undefined>);
  /** The operation that the calls belong to. The same call of the same operation is the same run, after a restart too. */
  id?: string | ((call: Call) => string | undefined | Promise<string | undefined>);
  /** Where the state of the operation's last call is kept. Needs an `id`, or a `key`. */
  store?: Store;
  /** What a restarted process gets: the answer from its beginning (default), or from the state's position on. */
  resume?: 'whole' | 'rest';
  /**
   * What an abort, or a reader that leaves, ends: the `reader` alone (default; the run's own policy,
   * `X-Buffer-On-Disconnect`, decides what becomes of it), or the `run` too.
   */
  cancel?: 'reader' | 'run';
  /** Which POSTs to the buffer are calls that generate; default those that the buffer knows by their path. */
  generates?: (url: URL) => boolean;
}

/** Returns a fetch for an LLM's SDK, whose answers are whole however often the connection is cut. */
export function durableFetch(options?: DurableFetchOptions): typeof globalThis.fetch;

/** Says that an answer cannot be had whole, and how far it came. */
export class DurableError extends Error {
  readonly name: 'DurableError';
  /**
   * The run's own reason where it ended broken (`eof_without_end`, `owner_lost`, `cancelled`, …), a code of the
   * buffer where it refused (`not_found`, `released`, …), or `unreachable` where every try was lost.
   */
  readonly reason: string;
  /** Empty where the answer had not begun. */
  readonly runId: string;
  /** The position of the first chunk that was not read whole. */
  readonly position: number;
  /** How many bytes of the run were delivered. */
  readonly bytes: number;
  /** The call's key. */
  readonly key: string;
  /** The last fault, where there was one. */
  readonly cause?: unknown;
}

// Those of the page's types and of Node's.
type HeadersInit = NonNullable<RequestInit['headers']>;
type RequestCredentials = NonNullable<RequestInit['credentials']>;

type MaybeLater<T> = T | (() => T | Promise<T>);

/** What useChat asks its transport to send. */
export interface SendMessages<Message = any> {
  trigger: 'submit-message' | 'regenerate-message';
  chatId: string;
  messageId: string | undefined;
  messages: Message[];
  abortSignal: AbortSignal | undefined;
  headers?: HeadersInit;
  body?: object;
  metadata?: unknown;
}

/** What prepareSendMessagesRequest is given, and may change. */
export interface PreparedMessages<Message = any> {
  id: string;
  messages: Message[];
  trigger: 'submit-message' | 'regenerate-message';
  messageId: string | undefined;
  requestMetadata: unknown;
  api: string;
  body: Record<string, any>;
  headers: Record<string, string>;
  credentials: RequestCredentials | undefined;
}

export interface DurableTransportOptions extends RepairOptions {
  /** The chat endpoint, through a provider route of the buffer. */
  api: string;
  /** The buffer's root; default the root of the endpoint's host. */
  baseUrl?: string;
  /** Where the chat's run is kept for a reload; default `localStorage`. */
  store?: Store;
  headers?: MaybeLater<HeadersInit | undefined>;
  body?: MaybeLater<object | undefined>;
  credentials?: RequestCredentials;
  prepareSendMessagesRequest?: (request: PreparedMessages) => PreparedRequest | Promise<PreparedRequest>;
}

export interface PreparedRequest {
  body: object;
  headers?: HeadersInit;
  credentials?: RequestCredentials;
  api?: string;
}

/** A transport for the AI SDK's useChat. */
export interface DurableTransport {
  readonly resumeStreamIsReplay: true;
  sendMessages(options: SendMessages): Promise<ReadableStream<any>>;
  reconnectToStream(options: { chatId: string; abortSignal?: AbortSignal; headers?: HeadersInit }): Promise<ReadableStream<any> | null>;
}

/** Returns a transport whose answers survive cuts, and a reload of the page. */
export function createDurableTransport(options: DurableTransportOptions): DurableTransport;

export interface Place {
  /** The event's name; `message` where it has none. */
  type: string;
  position: number;
}

export interface End {
  /** `gone` where there is nothing to read. */
  state: 'completed' | 'interrupted' | 'failed' | 'cancelled' | 'gone';
  reason?: string;
  position?: number;
  [name: string]: unknown;
}

export interface FollowOptions {
  onData(data: string, place: Place): void;
  onEnd?(end: End): void;
  /** The names of the provider's events; default `['message']`, which are those without one. */
  types?: string[];
  /** Default the page's own. */
  EventSource?: new (url: string) => EventTarget & { readonly readyState: number; close(): void };
}

/** Shows a run to a page, from its `/events` and a token. Returns what stops it. */
export function followRun(url: string, options: FollowOptions): () => void;
