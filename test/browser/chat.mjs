// examples/chat as it is shipped: its page and its server.
import { equal, says, tale } from './driver.mjs';

const turns = (page) => page.$$eval('#turns li', (items) => items.map((item) => item.textContent));

async function question(page, text) {
  await page.fill('input', text);
  await page.click('button');
}

export const chatCases = ({ job, open, ask }) => {
  // asked opens the page of a new chat and returns it in mid-answer.
  async function asked() {
    const page = await open(job.example);
    await page.evaluate(() => localStorage.clear());
    await page.reload();
    const before = Number(await ask('calls'));
    await question(page, 'Tell me a tale.');
    await says(page, 'Once upon');
    return { page, calls: async () => Number(await ask('calls')) - before };
  }

  // goesOn asks another question in the same chat: its answer is whole.
  async function goesOn(page, first) {
    await question(page, 'And then?');
    await says(page, 'And then? — Once upon');
    await ask('go');
    await says(page, `And then? — ${tale} (completed)`);
    equal(await turns(page), [first, `And then? — ${tale} (completed)`], 'the chat');
  }

  const whole = `Tell me a tale. — ${tale} (completed)`;
  return {
    async 'chat: reload in mid-answer'() {
      const { page, calls } = await asked();
      await page.reload();
      await says(page, 'Once upon');
      await page.reload();
      await says(page, 'Once upon');
      await ask('go');
      await says(page, '(completed)');
      equal([await turns(page), await calls()], [[whole], 1], 'the chat and the calls it cost');
      await goesOn(page, whole);
    },

    async 'chat: closed in mid-answer, opened when the run has ended'() {
      const { page, calls } = await asked();
      await page.close();
      await ask('go');
      const next = await open(job.example);
      await says(next, '(completed)');
      await next.reload();
      equal([await turns(next), await calls()], [[whole], 1], 'the chat and the calls it cost');
    },

    async 'chat: network drop'() {
      const { page, calls } = await asked();
      await ask('cut');
      await ask('go');
      await says(page, '(completed)');
      equal([await turns(page), await calls()], [[whole], 1], 'the chat and the calls it cost');
    },

    // A Spool that is told to stop finishes its answers, for pages that come back as well.
    async 'chat: Spool stopped and started again'() {
      const { page, calls } = await asked();
      await ask('term');
      await page.reload();
      await says(page, 'Once upon');
      await ask('go');
      await says(page, '(completed)');
      await ask('start');
      equal([await turns(page), await calls()], [[whole], 1], 'the chat and the calls it cost');
      await goesOn(page, whole);
    },

    // What was shown is on disk, and the page that stayed open learns what became of the rest.
    async 'chat: Spool killed and started again'() {
      const { page, calls } = await asked();
      await ask('kill');
      await ask('start');
      await says(page, '(interrupted)');
      const half = 'Tell me a tale. — Once upon a  (interrupted)';
      equal([await turns(page), await calls()], [[half], 1], 'the chat and the calls it cost');
      await page.reload();
      await goesOn(page, half);
    },
  };
};
