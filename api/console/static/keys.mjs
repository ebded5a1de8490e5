// Single keys move about, unless the viewer has switched them off on the page of the keys.

const setting = 'spool.shortcuts';

export function shortcuts(kept) {
  const box = document.getElementById('shortcuts');
  if (box) {
    box.disabled = false;
    box.checked = localStorage.getItem(setting) !== 'off';
    box.onchange = () => localStorage.setItem(setting, box.checked ? 'on' : 'off');
  }
  const go = (path) => () => document.querySelector(`.top a[href="${path}"]`)?.click();
  const does = {
    j: () => step(1), k: () => step(-1), p: () => kept?.pause(),
    r: go('/ui'), o: go('/ui/overview'), '?': go('/ui/keys'),
    '/': () => document.getElementById('search')?.focus(),
    a: () => document.getElementById('answer')?.focus(),
  };
  document.addEventListener('keydown', (e) => {
    if (e.key === 'Escape' && document.querySelector('details[open]')) close();
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest('input, select, textarea')) return;
    if (localStorage.getItem(setting) === 'off' || !does[e.key]) return;
    e.preventDefault();
    does[e.key]();
  });
}

function step(by) {
  const rows = [...document.querySelectorAll('#runs-rows a.id')];
  const at = rows.indexOf(document.activeElement.closest('tr')?.querySelector('a.id'));
  rows[at < 0 ? 0 : Math.min(Math.max(at + by, 0), rows.length - 1)]?.focus();
}

function close() {
  const open = document.querySelector('details[open]');
  open.open = false;
  open.querySelector('summary').focus();
}
