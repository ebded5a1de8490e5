// Every case of pages in a real browser. The job is JSON on stdin (browser_test.go says what its fields
// mean); each case is a line on stdout, with what was wrong. Some of them, by a part of
// their names: go test -tags browser ./test/browser -args PART
import fs from 'node:fs';
import { chatCases } from './chat.mjs';
import { launch, report } from './driver.mjs';
import { eventSourceCases } from './eventsource.mjs';
import { fetchCases } from './fetch.mjs';
import { reactCases } from './react.mjs';
import { sdkCases } from './sdk.mjs';

process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'; // the certificate is the test's own
const job = JSON.parse(fs.readFileSync(0, 'utf8'));
const browser = await launch(job.desk);

async function open(url) {
  const page = await browser.context.newPage();
  await page.goto(url);
  return page;
}

// ask has the Go test do something at the desk.
async function ask(what) {
  const answer = await fetch(`${job.control}/${what}`, { method: what === 'calls' ? 'GET' : 'POST' });
  if (!answer.ok) throw new Error(`${what}: ${await answer.text()}`);
  return answer.text();
}

const given = { job, open, ask };
const cases = { ...eventSourceCases(given), ...fetchCases(given), ...chatCases(given), ...reactCases(given), ...sdkCases(given) };

await report(cases, browser);
