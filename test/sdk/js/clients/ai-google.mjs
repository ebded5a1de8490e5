// npm ai with @ai-sdk/google.
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { readText } from '../ai-sdk.mjs';

export const run = (base, { model = 'gemini-2.5-flash', fetch, ...rest }) =>
  readText(createGoogleGenerativeAI({ apiKey: 'k', baseURL: `${base}/v1beta`, fetch })(model), rest);
