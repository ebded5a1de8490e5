// How the events of the two OpenAI protocols add to a Reading.
import OpenAI from 'openai';

export const connect = (base, { retries, fetch }) =>
  new OpenAI({ apiKey: 'k', baseURL: `${base}/v1`, maxRetries: retries, fetch });

export function chatChunk(chunk) {
  const choice = chunk.choices?.[0];
  const tools = choice?.delta?.tool_calls?.map(({ function: f }) => (f?.name ?? '') + (f?.arguments ?? ''));
  return { text: choice?.delta?.content, tools: tools?.join(''), finish: choice?.finish_reason };
}

export function responsesEvent(event) {
  switch (event.type) {
    case 'response.output_text.delta':
      return { text: event.delta };
    case 'response.output_item.added':
      return { tools: event.item.type === 'function_call' ? event.item.name : '' };
    case 'response.function_call_arguments.delta':
      return { tools: event.delta };
    case 'response.completed':
    case 'response.incomplete':
      return { finish: event.response.status };
    default:
      return {};
  }
}
