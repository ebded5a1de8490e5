// The console's pages. The job is JSON on stdin (console_test.go says what its fields mean); each case
// is a line on stdout, with what was wrong.
import axe from 'axe-core';
import fs from 'node:fs';
import path from 'node:path';
import { equal, launch } from './driver.mjs';

const job = JSON.parse(fs.readFileSync(0, 'utf8'));
const { context, close } = await launch(job.spool);
await context.grantPermissions(['clipboard-read', 'clipboard-write']);

// call makes a run and returns its id; its caller leaves at once, unless it is to read the whole.
async function call(provider, { headers = {}, caller = 'billing', whole = false, model = 'gpt-5-mini' } = {}) {
  const leave = new AbortController();
  const route = ['anthropic', 'gated'].includes(provider) ? '/v1/messages' : '/v1/chat/completions';
  const answer = await fetch(`${job.spool}/${provider}${route}`, {
    method: 'POST', signal: leave.signal, body: JSON.stringify({ model, stream: true }),
    headers: { 'x-buffer-key': job.keys[caller], 'content-type': 'application/json', ...headers },
  });
  if (whole) await answer.text().catch(() => {}); // it may be meant to be cut
  else leave.abort();
  return answer.headers.get('x-buffer-run-id');
}

const status = async (id, caller = 'billing') =>
  (await fetch(`${job.spool}/runs/${id}`, { headers: { 'x-buffer-key': job.keys[caller] } })).json();

async function open(url, size = { width: 1360, height: 900 }) {
  const page = await context.newPage();
  page.wrong = [];
  page.on('pageerror', (e) => page.wrong.push(String(e)));
  page.on('console', (m) => { if (m.type() === 'error' && !/401|404/.test(m.text())) page.wrong.push(m.text()); });
  await page.setViewportSize(size);
  await page.goto(url);
  return page;
}

// until waits for an expression of the page. The page's own policy forbids to evaluate one in it, so it
// is asked from outside.
async function until(page, expression) {
  for (const end = Date.now() + 60_000; Date.now() < end;) {
    if (await page.evaluate(expression).catch(() => false)) return; // the page may be on its way to another
    await page.waitForTimeout(50);
  }
  throw new Error(`never: ${expression}`);
}

const picture = (page, name) => page.screenshot({ path: path.join(job.pictures, `${name}.png`), fullPage: true });
const text = (page, selector) => page.locator(selector).innerText();
const rows = (page) => page.locator('#runs-rows tr').evaluateAll((all) => all.map((tr) => tr.id.slice(4)));

// clean checks that a page has no fault that axe knows, that nothing went wrong in it, and that it is not
// wider than its window.
async function clean(page, what, rules) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate((rules) => window.axe.run(rules ? { runOnly: rules } : {}), rules);
  equal(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(' ').slice(0, 300)}`), [], `axe on ${what}`);
  equal(page.wrong, [], `errors of ${what}`);
  equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, `${what} fits its window`);
}

const cases = {
  async 'the table is live'() {
    await call('openai', { whole: true, headers: { 'x-buffer-tag': 'conversation=7,user=ada' } });
    await call('busy', { whole: true, model: 'claude-sonnet-4' });
    await call('refuses', { whole: true });
    await call('cut', { whole: true, headers: { 'idempotency-key': 'cut-1', 'x-buffer-tag': 'turn=12' } });
    const page = await open(`${job.admin}/ui`);
    const before = await rows(page);
    equal(before.length, 4, 'rows');
    await page.locator('#runs-rows a.id').first().focus();
    const id = await call('open', { caller: 'research', model: 'llama-4' });
    await until(page, `!!document.getElementById('run-${id}')`);
    equal((await rows(page))[0], id, 'the newest run');
    equal(await page.evaluate(() => document.activeElement.closest('tr')?.id), `run-${before[0]}`, 'the focus');
    await until(page, `document.querySelector('#run-${id} .state').textContent === 'streaming'`);
    equal(await text(page, '#summary'), '5 runs, 1 live.', 'what is said');
    await call('anthropic', { model: 'claude-opus-4-1' });
    await until(page, `document.querySelectorAll('#runs-rows tr').length === 6`);
    await clean(page, 'runs');
    await picture(page, 'runs');
    await page.emulateMedia({ colorScheme: 'dark' });
    await clean(page, 'dark runs', ['color-contrast']);
    await picture(page, 'runs-dark');
  },

  async 'filters'() {
    const page = await open(`${job.admin}/ui`);
    await page.selectOption('[name=state]', 'failed');
    await page.click('text=Filter');
    equal(await page.locator('#runs-rows .state').allInnerTexts(), ['failed'], 'states');
    await page.goto(`${job.admin}/ui?provider=open`);
    equal((await rows(page)).length, 1, 'runs of a provider');
    await page.goto(`${job.admin}/ui?caller=research`);
    equal((await rows(page)).length, 1, 'runs of a caller');
    await page.fill('#search', 'user=ada');
    await page.selectOption('[name=state]', '');
    await page.fill('[name=caller]', '');
    await page.press('#search', 'Enter');
    await page.waitForURL(/tag=user/);
    const [id] = await rows(page);
    equal((await rows(page)).length, 1, 'runs with a tag');
    await page.fill('#search', id);
    await page.press('#search', 'Enter');
    await page.waitForURL(`${job.admin}/ui/runs/${id}`);
    await page.goto(`${job.admin}/ui?tag=nobody`);
    equal(await text(page, '#summary'), 'No run matches.', 'what is said');
    await clean(page, 'an empty table');
  },

  async 'an answer is written as it comes'() {
    const id = await call('gated', { model: 'claude-opus-4-1', headers: { 'x-buffer-tag': 'conversation=9' } });
    const reader = fetch(`${job.spool}/runs/${id}/resume`, { headers: { 'x-buffer-key': job.keys.billing } });
    const page = await open(`${job.admin}/ui/runs/${id}`);
    await until(page, `document.querySelector('#answer').textContent.length > 60`);
    equal(await page.locator('#facts .state').first().innerText(), 'streaming', 'the state');
    await until(page, `!!document.querySelector('#run-readers progress')`);
    await clean(page, 'a live run');
    await picture(page, 'run-live');
    await fetch(job.gate);
    await until(page, `document.querySelector('#facts .state').textContent === 'completed'`);
    const said = await page.locator('#answer').evaluate((el) => el.textContent);
    equal(said.startsWith('A durable stream') && said.endsWith('its author says so.'), true, `the words: ${said}`);
    await reader;
    await clean(page, 'an ended run');
    await picture(page, 'run');
    await page.emulateMedia({ colorScheme: 'dark' });
    await clean(page, 'a dark run', ['color-contrast']);
    await picture(page, 'run-dark');
    await page.locator('.curl .copy').first().click();
    await until(page, `document.getElementById('said').textContent.includes('copied')`);
    const command = await page.evaluate(() => navigator.clipboard.readText());
    equal(command, `curl -sSN -H "Authorization: Bearer $SPOOL_KEY" '${job.spool}/runs/${id}/resume?from=0'`, 'the command');
    const reloaded = await open(`${job.admin}/ui/runs/${id}`);
    equal(await reloaded.locator('#answer').evaluate((el) => el.textContent), said, 'the words of the server');
  },

  async 'cancel and release'() {
    const id = await call('open', { caller: 'research' });
    const page = await open(`${job.admin}/ui/runs/${id}`);
    await page.click('#run-actions summary');
    await picture(page, 'cancel');
    await page.click('text=Cancel the run');
    await page.waitForURL(`${job.admin}/ui/runs/${id}`);
    await until(page, `document.querySelector('#facts .state').textContent === 'cancelled'`);
    equal((await status(id, 'research')).state, 'cancelled', 'the state');
    await page.click('#run-actions summary');
    await page.click('text=Release the answer');
    await until(page, `document.querySelector('#facts .state').textContent === 'released'`);
    equal((await status(id, 'research')).state, 'released', 'the state');
    await clean(page, 'a released run');
  },

  async 'attempts'() {
    const page = await open(`${job.admin}/ui?provider=busy`);
    await page.click('#runs-rows a.id');
    equal(await page.locator('.ledger li').count(), 2, 'attempts');
    equal(await page.locator('.ledger .action').allInnerTexts(), ['retry', 'complete'], 'actions');
    await clean(page, 'a run with a retry');
    await picture(page, 'run-retry');
    await page.goto(`${job.admin}/ui?provider=refuses`);
    await page.click('#runs-rows a.id');
    equal(await text(page, '#answer'), 'Incorrect API key provided.', 'the refusal');
  },

  async 'what is hostile stays a text'() {
    const id = await call('evil', { whole: true, model: job.evil, headers: { 'x-buffer-tag': `"><script>owned</script>=<img src=x onerror=window.owned=1>`, 'idempotency-key': '"><svg onload=window.owned=1>' } });
    const page = await open(`${job.admin}/ui`);
    await until(page, `!!document.getElementById('run-${id}')`);
    const about = await open(`${job.admin}/ui/runs/${id}`);
    equal(await about.locator('#answer').evaluate((el) => el.textContent), job.evil, 'the answer');
    for (const p of [page, about]) {
      equal(await p.evaluate(() => window.owned), undefined, 'what ran');
      await clean(p, 'a hostile run');
    }
    await about.locator('#run-more a.tag').click();
    equal(await page.evaluate(() => window.owned), undefined, 'what ran');
  },

  async 'overview'() {
    const page = await open(`${job.admin}/ui/overview`);
    await until(page, `document.querySelectorAll('.plot').length === 7`);
    await until(page, `!!document.querySelector('#panel-1 .area')`);
    await clean(page, 'the overview');
    await picture(page, 'overview');
    await page.emulateMedia({ colorScheme: 'dark' });
    await clean(page, 'the dark overview', ['color-contrast']);
    await page.click('#pause');
    equal(await page.getAttribute('#pause', 'aria-pressed'), 'true', 'paused');
  },

  async 'phone'() {
    const size = { width: 360, height: 740 };
    const page = await open(`${job.admin}/ui`, size);
    await clean(page, 'runs on a phone');
    await picture(page, 'phone-runs');
    await page.locator('#runs-rows a.id').first().click();
    await clean(page, 'a run on a phone');
    await picture(page, 'phone-run');
    for (const where of ['overview', 'keys']) {
      await page.goto(`${job.admin}/ui/${where}`);
      await clean(page, `${where} on a phone`);
      await picture(page, `phone-${where}`);
    }
  },

  async 'keyboard alone'() {
    const page = await open(`${job.admin}/ui`);
    const key = (k) => page.keyboard.press(k);
    const at = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent.trim());
    await key('Tab');
    equal(await at(), 'Skip to the content', 'the first stop');
    await key('Enter');
    equal(await at(), 'main', 'after the skip');
    await key('/');
    equal(await at(), 'search', 'after /');
    await page.keyboard.type('jk'); // letters of a field are letters
    equal(await page.inputValue('#search'), 'jk', 'the field');
    await page.fill('#search', '');
    await page.evaluate(() => document.activeElement.blur());
    const all = await rows(page);
    await key('j'); await key('j'); await key('k');
    equal(await page.evaluate(() => document.activeElement.closest('tr').id), `run-${all[0]}`, 'the row');
    await key('j');
    await key('Enter');
    await page.waitForURL(`${job.admin}/ui/runs/${all[1]}`);
    await key('a');
    equal(await at(), 'answer', 'after a');
    await key('o');
    await page.waitForURL(`${job.admin}/ui/overview`);
    await key('?');
    await page.waitForURL(`${job.admin}/ui/keys`);
    await clean(page, 'keys');
    await page.focus('#shortcuts');
    await key('Space');
    await page.evaluate(() => document.activeElement.blur());
    await key('r'); // does nothing now
    equal(page.url(), `${job.admin}/ui/keys`, 'the page');
    await page.check('#shortcuts');
    await page.evaluate(() => document.activeElement.blur());
    await key('r');
    await page.waitForURL(`${job.admin}/ui`);
    const stops = new Set(); // every control can be reached
    for (let i = 0; i < 60; i++) { await key('Tab'); stops.add(await at()); }
    for (const stop of ['Runs', 'Overview', 'Keys', 'search', 'Filter', 'pause']) equal(stops.has(stop), true, `a stop at ${stop}`);
  },

  async 'a caller sees its own'() {
    const own = await call('openai', { whole: true, caller: 'research' });
    const other = await call('openai', { whole: true });
    const page = await open(`${job.spool}/ui`);
    await clean(page, 'the sign-in');
    await picture(page, 'sign-in');
    await page.fill('[name=key]', 'not a key at all, is it');
    await page.press('[name=key]', 'Enter');
    await page.waitForURL(`${job.spool}/ui/sign-in`);
    await page.fill('[name=key]', job.keys.research);
    await page.click('button.strong');
    await page.waitForURL(`${job.spool}/ui`);
    const seen = await rows(page);
    equal([seen.includes(own), seen.includes(other)], [true, false], 'own, and another caller\'s');
    equal(await page.locator('text=Overview').count(), 0, 'links to the overview');
    equal((await page.goto(`${job.spool}/ui/runs/${other}`)).status(), 404, 'another caller\'s run');
    equal((await page.goto(`${job.spool}/ui/overview`)).status(), 404, 'the overview');
    await page.goto(`${job.spool}/ui`);
    await clean(page, 'a caller\'s runs');
    await page.click('text=Sign out');
    equal(await page.locator('[name=key]').count(), 1, 'the sign-in');
    equal((await page.goto(`${job.spool}/ui/runs/${own}`)).status(), 401, 'own run without a session');
  },

  async 'a run token sees its run'() {
    const id = await call('anthropic');
    const other = await call('openai', { whole: true });
    const minted = await (await fetch(`${job.spool}/runs/${id}/token`, { method: 'POST', headers: { 'x-buffer-key': job.keys.billing } })).json();
    const page = await open(`${job.spool}/ui/runs/${id}?token=${minted.token}`);
    await until(page, `document.querySelector('#facts .state').textContent === 'completed'`);
    equal((await page.locator('#answer').evaluate((el) => el.textContent)).endsWith('its author says so.'), true, 'the words');
    equal(await page.locator('#run-actions details').count(), 0, 'actions');
    await clean(page, 'a run by its token');
    equal((await page.goto(`${job.spool}/ui/runs/${other}?token=${minted.token}`)).status(), 404, 'another run');
    await page.goto(`${job.spool}/ui?token=${minted.token}`);
    equal(new URL(page.url()).pathname, `/ui/runs/${id}`, 'where the runs lead to');
  },

  async 'without scripts'() {
    const bare = await context.browser()?.newContext({ javaScriptEnabled: false });
    if (!bare) throw new Error('no browser of its own');
    const page = await bare.newPage();
    await page.goto(`${job.admin}/ui?provider=openai`);
    await page.click('#runs-rows a.id');
    equal((await text(page, '#answer')).startsWith('A durable stream'), true, 'the words');
    await page.click('#run-actions summary');
    await page.click('text=Release the answer');
    equal(await page.locator('#facts .state').first().innerText(), 'released', 'the state');
    await bare.close();
  },
};

for (const [name, run] of Object.entries(cases)) {
  let error = '';
  const begun = Date.now();
  try {
    await run();
  } catch (e) {
    error = String(e.stack ?? e);
    const [page] = context.pages().slice(-1);
    if (page) await picture(page, `failed-${name.replaceAll(/[^a-z]+/g, '-')}`).catch(() => {});
  }
  console.error(`${name}: ${Date.now() - begun} ms`);
  console.log(JSON.stringify({ name, error }));
  for (const p of context.pages()) await p.close();
}
await close();
