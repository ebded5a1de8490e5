// What the types of our client promise to those of the SDKs. It is checked, never run.
import Anthropic from '@anthropic-ai/sdk';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { GoogleGenAI } from '@google/genai';
import { ChatAnthropic } from '@langchain/anthropic';
import { ChatOpenAI } from '@langchain/openai';
import type { ChatTransport, UIMessage } from 'ai';
import { EventSource } from 'eventsource';
import OpenAI from 'openai';
import { createDurableTransport, durableFetch, DurableError, followRun, type State, type Store } from '@spool-dev/client';

const fetch = durableFetch({
  baseUrl: new URL('http://buffer:8787'),
  id: 'turn-1',
  key: ({ url, headers, body }) => `${url.pathname}${headers.get('x')}${body.length}`,
  store: new Map<string, string>(),
  resume: 'rest',
  cancel: 'run',
  retry: { tries: 3, base: 1, cap: 2, longest: 3 },
  idle: 0,
  generates: ({ pathname }) => pathname === '/',
});

new OpenAI({ fetch });
new Anthropic({ fetch });
new GoogleGenAI({ httpOptions: { fetch } });
createOpenAI({ fetch });
createAnthropic({ fetch });
createGoogleGenerativeAI({ fetch });
new ChatOpenAI({ configuration: { fetch } });
new ChatAnthropic({ clientOptions: { fetch } });

export const stores: Store[] = [new Map<string, string>(), localStorage, { get: async () => null, set: async () => {} }];
export const transport: ChatTransport<UIMessage> = createDurableTransport({
  api: '/app/chat',
  headers: () => ({ authorization: 'Bearer k' }),
  prepareSendMessagesRequest: ({ id, messages, body }) => ({ body: { ...body, id, last: messages.at(-1) } }),
});

export const stop: () => void = followRun('/runs/R/events', {
  EventSource,
  types: ['message'],
  onData: (data, { type, position }) => data.length + type.length + position,
  onEnd: ({ state, reason }) => state === 'completed' || reason,
});

export function where(error: unknown): Pick<State, 'run' | 'position'> | undefined {
  if (error instanceof DurableError) return { run: error.runId, position: error.position };
}

// @ts-expect-error there is no such way to go on
durableFetch({ resume: 'half' });
// @ts-expect-error a transport needs an endpoint
createDurableTransport({});
