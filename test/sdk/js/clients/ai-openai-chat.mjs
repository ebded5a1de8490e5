// npm ai with @ai-sdk/openai over Chat Completions.
import { createOpenAI } from '@ai-sdk/openai';
import { readText } from '../ai-sdk.mjs';

export const run = (base, { model = 'lab', fetch, ...rest }) =>
  readText(createOpenAI({ apiKey: 'k', baseURL: `${base}/v1`, fetch }).chat(model), rest);
