// npm @langchain/openai, ChatOpenAI.stream().
import { ChatOpenAI } from '@langchain/openai';
import { readChat } from '../langchain.mjs';

export const run = (base, { model = 'lab', retries, fetch, ...rest }) =>
  readChat(new ChatOpenAI({ apiKey: 'k', model, maxRetries: retries, configuration: { baseURL: `${base}/v1`, fetch } }), rest);
