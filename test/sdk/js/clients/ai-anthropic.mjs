// npm ai with @ai-sdk/anthropic.
import { createAnthropic } from '@ai-sdk/anthropic';
import { readText } from '../ai-sdk.mjs';

export const run = (base, { model = 'lab', fetch, ...rest }) =>
  readText(createAnthropic({ apiKey: 'k', baseURL: `${base}/v1`, fetch })(model), rest);
