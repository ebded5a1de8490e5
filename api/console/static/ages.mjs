// ages writes moments as how long ago they are. The moment itself stays in the title.
export function ages() {
  now();
  setTimeout(ages, 1000);
}

export function now(root = document) {
  for (const el of root.querySelectorAll('time[data-age]')) write(el);
}

function write(el) {
  if (!el.title) el.title = el.textContent;
  const text = since(Date.now() - Date.parse(el.dateTime));
  if (el.textContent !== text) el.textContent = text;
}

function since(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} m`;
  if (s < 86400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}
