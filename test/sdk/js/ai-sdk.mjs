// The AI SDK's streamText over one model of whatever provider.
import { streamText } from 'ai';
import { call } from './reading.mjs';

export async function readText(model, { prompt, retries, seen }) {
  let failure = null;
  const { fullStream } = streamText({ model, prompt, maxRetries: retries, onError: ({ error }) => { failure = error; } });
  for await (const part of fullStream) {
    seen.add(partOf(part));
    if (part.type === 'error') failure = part.error;
  }
  if (failure) throw failure;
}

function partOf(part) {
  switch (part.type) {
    case 'text-delta':
      return { text: part.text };
    case 'tool-call':
      return { tools: call(part.toolName, part.input) };
    case 'finish':
      return { finish: part.finishReason };
    default:
      return {};
  }
}
