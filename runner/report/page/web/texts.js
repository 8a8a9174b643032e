// Texts of agents: long texts are folded, fenced blocks are set apart, and JSON is
// formatted and coloured. All of it is text; nothing is read as markup.

const FOLD_LINES = 24;
const FOLD_CHARACTERS = 2400;

// folded shows a text; a long text first shows only its start.
function folded(text, make) {
  const lines = text.split('\n');
  if (lines.length <= FOLD_LINES + 6 && text.length <= FOLD_CHARACTERS * 1.25) return make(text);
  const part = clip(lines.slice(0, FOLD_LINES).join('\n'), FOLD_CHARACTERS);
  const place = el('div', { class: 'folded' });
  const close = () =>
    put(
      place,
      make(part),
      el(
        'button',
        { type: 'button', class: 'more', 'aria-expanded': 'false', onclick: open },
        `Show all: ${plural(lines.length, 'line')}, ${bytes(text.length)}`,
      ),
    );
  const open = () =>
    put(
      place,
      make(text),
      el('button', { type: 'button', class: 'more', 'aria-expanded': 'true', onclick: close }, 'Show less'),
    );
  close();
  return place;
}

// prose shows a message. Blocks between ``` are set apart.
function prose(text) {
  if (!text) return el('p', { class: 'quiet' }, 'Nothing.');
  return folded(text, (part) => {
    const pieces = part.split(/^```[^\n]*\n?/m);
    return el(
      'div',
      { class: 'prose' },
      pieces.map((piece, i) => {
        const plain = withoutEmptyLines(piece);
        if (!plain) return null;
        return i % 2 ? el('pre', { tabindex: 0 }, plain) : el('p', {}, plain);
      }),
    );
  });
}

// withoutEmptyLines removes line ends from the start and the end of a text. An agent may
// have written any number of them.
function withoutEmptyLines(text) {
  let from = 0;
  let to = text.length;
  while (from < to && text[from] === '\n') from++;
  while (to > from && text[to - 1] === '\n') to--;
  return text.slice(from, to);
}

// code shows a text unchanged.
const code = (text) => folded(text, (part) => el('pre', { tabindex: 0 }, part));

// value shows a JSON value: texts unchanged, other values formatted and coloured.
function value(json) {
  if (json === undefined || json === null) return el('p', { class: 'quiet' }, 'Nothing.');
  if (typeof json === 'string') return code(json);
  return folded(JSON.stringify(json, null, 2), (part) => el('pre', { class: 'json', tabindex: 0 }, coloured(part)));
}

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

// coloured splits formatted JSON into parts of different colours.
function coloured(text) {
  const list = [];
  let last = 0;
  for (const found of text.matchAll(TOKEN)) {
    if (found.index > last) list.push(text.slice(last, found.index));
    const kind = found[2] ? 'key' : found[1] ? 'string' : 'literal';
    list.push(el('span', { class: kind }, found[1] || found[0]), found[2] || '');
    last = found.index + found[0].length;
  }
  return [...list, text.slice(last)];
}

// oneLine returns the arguments of a call in one line.
function oneLine(json) {
  if (json === undefined || json === null) return '';
  if (typeof json !== 'object') return clip(String(json).replace(/\s+/g, ' '), 160);
  const entries = Object.entries(json);
  if (entries.length === 1 && typeof entries[0][1] === 'string') return clip(entries[0][1].replace(/\s+/g, ' '), 160);
  return clip(
    entries
      .map(([k, v]) => `${k}: ${typeof v === 'string' ? v : JSON.stringify(v)}`)
      .join(', ')
      .replace(/\s+/g, ' '),
    160,
  );
}
