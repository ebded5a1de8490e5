// An answer is written as it comes. Each message holds pieces of one kind and the events that they came
// in; its id is the position to come back with, which EventSource keeps by itself.

const events = 100; // that the page holds
const words = 4 << 20; // characters that the page holds

export function listen(answer, ended) {
  if (!answer.dataset.live) return;
  const note = document.getElementById('answer-note');
  let from = answer.dataset.next, held = answer.textContent.length;

  function open() {
    const url = new URL(answer.dataset.live, location.href);
    url.searchParams.set('from', from);
    const source = new EventSource(url);
    source.onmessage = (e) => {
      const said = JSON.parse(e.data);
      from = said.next;
      for (const p of said.pieces ?? []) write(p);
      for (const one of said.events ?? []) list(one);
      note.textContent = `${said.next} events`;
      if (held > words) {
        source.close();
        note.textContent = `stopped at event ${said.next}: the rest is on a page of its own, ?from=${said.next}`;
      }
    };
    source.addEventListener('full', () => { source.close(); open(); });
    source.addEventListener('end', () => { source.close(); ended(); });
  }

  function write({ kind, text }) {
    document.getElementById('answer-none')?.remove();
    const follows = answer.scrollTop + answer.clientHeight > answer.scrollHeight - 40;
    let last = answer.lastElementChild;
    if (!last?.classList.contains(kind)) {
      last = document.createElement('div');
      last.className = `piece ${kind}`;
      answer.append(last);
    }
    last.append(text); // a text, whatever it looks like
    held += text.length;
    if (follows) answer.scrollTop = answer.scrollHeight;
  }

  function list({ pos, text }) {
    const all = document.getElementById('events');
    const box = all.parentElement, follows = box.scrollTop + box.clientHeight > box.scrollHeight - 40;
    const item = document.createElement('li'), at = document.createElement('span'), code = document.createElement('code');
    item.value = pos;
    at.className = 'pos';
    at.textContent = pos;
    code.textContent = text;
    item.append(at, code);
    all.append(item);
    while (all.children.length > events) all.firstElementChild.remove();
    if (follows) box.scrollTop = box.scrollHeight;
  }

  open();
}
