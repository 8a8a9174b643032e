// The files that a trial left, and the changes to the files that it was given.

const STATES = { changed: 'changed', added: 'added', removed: 'removed', unknown: 'given', same: 'unchanged' };

function files(list, incomplete) {
  const same = list.filter((f) => f.state === 'same');
  const others = list.filter((f) => f.state !== 'same');
  return [
    incomplete && el('p', { class: 'quiet' }, `The list is incomplete: ${incomplete}.`),
    el(
      'ul',
      { class: 'files' },
      others.map((f, i) => el('li', {}, file(f, i < 3))),
    ),
    same.length > 0 &&
      disclosure(
        el('span', { class: 'quiet' }, plural(same.length, 'unchanged file')),
        () =>
          el(
            'ul',
            { class: 'files' },
            same.map((f) => el('li', {}, file(f, false))),
          ),
        others.length === 0 && same.length < 8,
      ),
  ].filter(Boolean);
}

function file(f, open) {
  const head = [
    el('span', { class: `state f-${f.state}` }, STATES[f.state] || f.state),
    ' ',
    el('code', {}, f.path),
    f.link && el('span', { class: 'quiet' }, ` → ${f.link}`),
    f.type && f.type !== 'link' && el('span', { class: 'quiet' }, ` ${f.type}`),
    known(f.size) && el('span', { class: 'took' }, bytes(f.size)),
    f.note && el('span', { class: 'quiet' }, ` – ${f.note}`),
  ];
  if (f.diff === undefined && f.text === undefined) return el('p', {}, head);
  return disclosure(
    head,
    () =>
      f.diff === undefined
        ? code(f.text)
        : f.diff
          ? difference(f.diff)
          : el('p', { class: 'quiet' }, 'Its content is the same.'),
    open,
  );
}

// difference shows a unified diff; signs repeat the meaning of the colours.
function difference(text) {
  return folded(text.replace(/\n$/, ''), (part) =>
    el(
      'pre',
      { class: 'diff', tabindex: 0 },
      part.split('\n').map((line) => {
        const kind = { '+': 'plus', '-': 'minus', '@': 'place', '\\': 'place' }[line[0]];
        return el('span', { class: kind || null }, line || ' ');
      }),
    ),
  );
}
