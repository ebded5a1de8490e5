// How the events of the Anthropic protocol add to a Reading.
import Anthropic from '@anthropic-ai/sdk';

export const connect = (base, { retries, fetch }) =>
  new Anthropic({ apiKey: 'k', baseURL: base, maxRetries: retries, fetch });

export const request = ({ model, prompt }) =>
  ({ model: model ?? 'lab', max_tokens: 64, messages: [{ role: 'user', content: prompt }] });

export function messageEvent(event) {
  switch (event.type) {
    case 'content_block_start':
      return { tools: event.content_block.type === 'tool_use' ? event.content_block.name : '' };
    case 'content_block_delta':
      return { text: event.delta.text, tools: event.delta.partial_json };
    case 'message_delta':
      return { finish: event.delta.stop_reason };
    default:
      return {};
  }
}
