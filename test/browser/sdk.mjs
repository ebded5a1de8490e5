// The providers' SDKs in a page, where each header of theirs needs a preflight's leave.
import { equal } from './driver.mjs';

// make has a page make a call, and returns all that it reads of the answer.
const make = (page, job, call) => page.evaluate(async ({ base, call }) => {
  const { Anthropic, OpenAI } = await import('/library.js');
  const common = { model: 'm', stream: true, messages: [{ role: 'user', content: 'Hello' }] };
  const options = { apiKey: 'k', dangerouslyAllowBrowser: true, maxRetries: 0 };
  const request = { headers: { 'idempotency-key': `a page's ${call}` } };
  let text = '';
  if (call === 'openai') {
    const client = new OpenAI({ ...options, baseURL: `${base}/openai/v1`, organization: 'o', project: 'p' });
    for await (const { choices } of await client.chat.completions.create(common, request)) text += choices[0]?.delta?.content ?? '';
  } else {
    const client = new Anthropic({ ...options, baseURL: `${base}/anthropic` });
    for await (const { delta } of await client.messages.create({ ...common, max_tokens: 64 }, request)) text += delta?.text ?? '';
  }
  return text;
}, { base: job.spool, call });

export const sdkCases = ({ job, open }) => Object.fromEntries(['openai', 'anthropic'].map((name) => [
  `${name}'s SDK: a call from a page`,
  async () => {
    equal(await make(await open(job.home), job, name), job.text, 'the answer');
    await make(await open(job.foreign), job, name).then(
      () => { throw new Error('a page of another origin reads'); },
      (error) => equal(/Connection error/.test(error.message), true, error.message),
    );
  },
]));
