// useChat of @ai-sdk/react, under React in its strict mode: with the transport of clients/js, as in its
// example, and with the AI SDK's own.
import { equal, says, tale, waitFor } from './driver.mjs';

const whole = ['user: Tell me a tale.', `assistant: ${tale}`];
const said = (page) => page.$$eval('p', (items) => items.map((item) => item.textContent));
const ready = (page) => waitFor(page, 'document.querySelector("output")?.textContent === "ready"');

export const reactCases = ({ job, open, ask }) => {
  let chats = 0;

  // asked opens a new chat and returns its page in mid-answer, with what became of requests about runs.
  async function asked(kind) {
    const page = await open(`${job.home}/react.html${kind}#chat-${chats++}`);
    await page.evaluate(() => localStorage.clear());
    await page.reload();
    const answers = [];
    let run;
    page.on('response', (response) => {
      run = response.headers()['x-buffer-run-id'] ?? run;
      const { pathname } = new URL(response.url());
      if (/^\/runs\/.*\/stream$/.test(pathname)) answers.push(response.status());
    });
    const before = Number(await ask('calls'));
    await ready(page);
    await page.fill('input', 'Tell me a tale.');
    await page.press('input', 'Enter');
    await says(page, 'Once upon');
    return { page, answers, calls: async () => Number(await ask('calls')) - before, run: () => run };
  }

  // state waits until a run has ended, and returns how.
  async function state(run) {
    for (;;) {
      const status = await (await fetch(`${job.desk}/runs/${run}`)).json();
      if (status.ended) return status.state;
      await new Promise((resolve) => { setTimeout(resolve, 20); });
    }
  }

  const cases = {};
  for (const [name, kind] of [['useChat', ''], ['useChat with its own transport', '?stock']]) {
    const kept = (resumed) => (kind ? resumed.slice(-1) : whole); // the stock page keeps no messages
    Object.assign(cases, {
      async [`${name}: reload in mid-answer`]() {
        const { page, answers, calls } = await asked(kind);
        await page.reload();
        await says(page, 'Once upon');
        await ask('go');
        await ready(page);
        equal([await said(page), await calls()], [kept(whole), 1], 'the chat and the calls it cost');
        equal(answers.includes(200), true, 'a resumed stream');
      },

      async [`${name}: reload when the run has ended`]() {
        const { page, answers, calls } = await asked(kind);
        await ask('go');
        await ready(page);
        equal(await said(page), whole, 'the chat');
        await Promise.all([page.waitForResponse((response) => response.url().includes('/stream')), page.reload()]);
        await ready(page);
        equal([answers, await calls()], [answers.map(() => 204), 1], 'answers to who would resume, and calls');
        equal(await said(page), kept([]), 'the chat');
      },
    });
  }

  return {
    ...cases,

    async 'useChat: network drop'() {
      const { page, calls } = await asked('');
      await ask('cut');
      await ask('go');
      await ready(page);
      equal([await said(page), await calls()], [whole, 1], 'the chat and the calls it cost');
    },

    async 'useChat: stop'() {
      const { page, run, calls } = await asked('');
      await page.click('button');
      await ready(page);
      equal([await state(run()), await calls()], ['cancelled', 1], 'the run and the calls');
      equal((await said(page)).at(-1), 'assistant: Once upon ', 'the half');
    },

    async 'useChat: stop after a reload'() {
      const { page, run, calls } = await asked('');
      await page.reload();
      await says(page, 'Once upon');
      await page.click('button');
      await ready(page);
      equal([await state(run()), await calls()], ['cancelled', 1], 'the run and the calls');
    },

    async 'useChat: Spool stopped and started again'() {
      const { page, calls } = await asked('');
      await ask('term');
      await page.reload();
      await says(page, 'Once upon');
      await ask('go');
      await ready(page);
      await ask('start');
      equal([await said(page), await calls()], [whole, 1], 'the chat and the calls it cost');
    },

    // An answer whose Spool has died is no whole one: the page says so, and keeps what there is of it.
    async 'useChat: Spool killed and started again'() {
      const { page, calls } = await asked('');
      await ask('kill');
      await ask('start');
      await says(page, 'owner_lost');
      equal([(await said(page)).at(-1), await calls()], ['assistant: Once upon ', 1], 'the half and the calls it cost');
    },
  };
};
