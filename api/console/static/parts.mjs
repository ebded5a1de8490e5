// A part of a page is kept as its source has it. The source answers 304 where nothing has changed, and
// what has not changed stays in its place, with its focus.

import { now as age } from './ages.mjs';

const was = new WeakMap(); // what the server said of an element, before its ages were written

export function keep(part) {
  remember(part);
  const every = Number(part.dataset.every);
  const pause = document.getElementById('pause');
  let tag = '', paused = false, timer = 0, asking = false, took = 0;

  async function turn(asked) {
    clearTimeout(timer);
    if (!asking && (asked || !document.hidden && !paused)) {
      asking = true;
      const begun = performance.now();
      await look().catch(() => {}); // the buffer is away: it is asked again
      took = performance.now() - begun;
      asking = false;
    }
    const still = part.id === 'facts' && !part.hasAttribute('data-moving');
    if (!still) timer = setTimeout(turn, Math.max(every, 10 * took)); // what is dear is asked for less often
  }

  async function look() {
    const answer = await fetch(part.dataset.source, { headers: tag ? { 'if-none-match': tag } : {}, cache: 'no-store' });
    if (answer.status === 401) location.reload(); // the session is over: its page says so
    if (answer.status !== 200) return;
    tag = answer.headers.get('etag');
    const next = document.createElement('template');
    next.innerHTML = await answer.text(); // the server has escaped what is in it, and no script of it runs
    remember(next.content);
    age(next.content);
    merge(part, next.content);
    tell();
  }

  function press() {
    paused = !paused;
    if (pause) {
      pause.textContent = paused ? 'Go on' : 'Pause';
      pause.setAttribute('aria-pressed', String(paused));
    }
    turn();
  }

  if (pause) {
    pause.hidden = false;
    pause.onclick = press;
  }
  document.addEventListener('visibilitychange', () => turn());
  timer = setTimeout(turn, every);
  return { pause: press, now: () => turn(true) };
}

function remember(root) {
  for (const el of root.querySelectorAll('[id]')) was.set(el, el.outerHTML);
}

// merge makes the children of now those of next, by their ids.
function merge(now, next) {
  const old = new Map([...now.children].map((el) => [el.id, el]));
  const want = [...next.children].map((el) => same(old.get(el.id), el, old.size > 0));
  const stay = new Set(want.map((el) => el.id));
  for (const el of [...now.children]) if (!stay.has(el.id)) el.remove();
  want.forEach((el, i) => {
    if (now.children[i] === el) return;
    const lost = now.children[i]?.id === el.id ? now.children[i] : null;
    if (lost) replace(lost, el);
    else now.insertBefore(el, now.children[i] ?? null);
  });
  while (now.children.length > want.length) now.lastElementChild.remove();
}

// same is the element that is to stand where el was sent for.
function same(old, el, others) {
  if (!old || !el.id) {
    if (others && el.matches('tr')) el.classList.add('fresh');
    return el;
  }
  const said = was.get(el);
  if (was.get(old) === said) return old;
  if (!el.hasAttribute('data-merge')) return el;
  for (const { name, value } of el.attributes) old.setAttribute(name, value);
  merge(old, el);
  was.set(old, said);
  return old;
}

// replace keeps the focus that is in an element where its successor has a place for it.
function replace(old, el) {
  const inside = [...old.querySelectorAll('a, button, summary, input')].indexOf(document.activeElement);
  old.replaceWith(el);
  if (inside >= 0) el.querySelectorAll('a, button, summary, input')[inside]?.focus();
}

// tell says what a table shows when that has changed, for who does not see it.
function tell() {
  const said = document.querySelector('[data-summary]')?.dataset.summary;
  const line = document.getElementById('summary');
  if (line && said && line.textContent !== said) line.textContent = said;
  const state = document.querySelector('#run-title .state')?.textContent;
  const status = document.getElementById('said');
  if (status && state && status.dataset.state !== state) {
    if (status.dataset.state) status.textContent = `The run is ${state}.`;
    status.dataset.state = state;
  }
  const facts = document.getElementById('facts');
  if (facts && state && !['streaming', 'idle'].includes(state)) facts.toggleAttribute('data-moving', !!facts.querySelector('progress'));
}
