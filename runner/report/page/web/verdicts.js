// Verdicts: their names, order and marks. Each has its own shape beside its colour, so
// that nobody needs to distinguish the colours.

// The letters are those of the columns. Shapes are drawn in a square of size 10.
const VERDICTS = {
  f: { name: 'failed', word: 'Failed', shape: 'M2.2 2.2L7.8 7.8M7.8 2.2L2.2 7.8', line: true },
  t: { name: 'timeout', word: 'Timed out', shape: 'M5 1.4a3.6 3.6 0 1 1-.01 0zM5 3v2.1l1.5.9', line: true },
  e: { name: 'error', word: 'Error', shape: 'M5 .9L9.4 8.8H.6z' },
  r: { name: 'needs_review', word: 'To review', shape: 'M5 .6L9.4 5L5 9.4L.6 5z' },
  p: { name: 'passed', word: 'Passed', shape: 'M5 .9a4.1 4.1 0 1 1-.01 0z' },
  c: { name: 'cancelled', word: 'Cancelled', shape: 'M5 1.4a3.6 3.6 0 1 1-.01 0zM2.6 7.4l4.8-4.8', line: true },
  s: { name: 'skipped', word: 'Skipped', shape: 'M2 5H8', line: true },
  '?': { name: 'unended', word: 'Not finished', shape: 'M5 4.2a.8 .8 0 1 1-.01 0z' },
};

// ORDER lists the verdicts, the most important for a reader first.
const ORDER = ['f', 't', 'e', 'r', 'p', 'c', 's', '?'];

const LETTERS = Object.fromEntries(Object.entries(VERDICTS).map(([letter, v]) => [v.name, letter]));

// letterOf returns the letter of a verdict; an empty name means that there is no verdict yet.
const letterOf = (name) => LETTERS[name] || '?';

// counted reports whether a verdict counts as a result of the agent.
const counted = (letter) => letter === 'p' || letter === 'f' || letter === 't';

// mark returns the sign of a verdict.
function mark(letter, size = 12) {
  const v = VERDICTS[letter];
  return svg(
    'svg',
    { class: `mark v-${v.name}`, viewBox: '0 0 10 10', width: size, height: size, 'aria-hidden': 'true' },
    svg('path', { class: v.line ? 'line' : 'solid', d: v.shape }),
  );
}

// verdict returns the sign and the word of a verdict.
const verdict = (letter) =>
  el('span', { class: `verdict v-${VERDICTS[letter].name}` }, mark(letter), VERDICTS[letter].word);

// COUNTS maps letters to the names of counts in the data.
const COUNTS = { p: 'passed', f: 'failed', e: 'errors', t: 'timeouts', c: 'cancelled', s: 'skipped', r: 'needsReview' };

// parts lists the verdicts with counts above zero; trials that have not ended come last.
function parts(counts) {
  const list = ORDER.filter((l) => COUNTS[l] && counts[COUNTS[l]] > 0).map((l) => [l, counts[COUNTS[l]]]);
  const rest = counts.total - list.reduce((sum, [, n]) => sum + n, 0);
  return rest > 0 ? [...list, ['?', rest]] : list;
}

// saying returns counts in words: "18 passed, 2 failed".
const saying = (counts) =>
  parts(counts)
    .map(([l, n]) => `${count(n)} ${VERDICTS[l].word.toLowerCase()}`)
    .join(', ');
