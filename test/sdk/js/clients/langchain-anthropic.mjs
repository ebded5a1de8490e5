// npm @langchain/anthropic, ChatAnthropic.stream().
import { ChatAnthropic } from '@langchain/anthropic';
import { readChat } from '../langchain.mjs';

export const run = (base, { model = 'claude-lab', retries, fetch, ...rest }) =>
  readChat(new ChatAnthropic({ apiKey: 'k', model, maxRetries: retries, anthropicApiUrl: base, clientOptions: { fetch } }), rest);
