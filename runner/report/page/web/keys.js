// The keyboard.

const KEYS = [
  ['j', '↓', 'the next row'],
  ['k', '↑', 'the previous row'],
  ['Enter', 'open a task, or the transcript of a trial'],
  ['→', '←', 'open or close a task'],
  ['/', 'search'],
  ['f', 'the next filter'],
  ...(HOST.themed ? [] : [['d', 'light, dark or system theme']]),
  ['p', 'the next page of tasks'],
  ['P', 'the previous page of tasks'],
  ['?', 'show these keys'],
  ['Esc', 'close'],
  null,
  ['j', 'the next trial, in an open trial'],
  ['k', 'the previous trial'],
  ['e', 'open or close all tool calls'],
];

function showKeys() {
  const dialog = byId('keys');
  put(
    dialog,
    el('h2', { id: 'keys-title' }, 'Keys'),
    el(
      'dl',
      {},
      KEYS.map((line) =>
        line
          ? [
              el(
                'dt',
                {},
                line.slice(0, -1).map((k) => el('kbd', {}, k)),
              ),
              el('dd', {}, line[line.length - 1]),
            ]
          : [el('dt', { class: 'gap' }), el('dd', { class: 'gap' })],
      ),
    ),
    el('button', { type: 'button', class: 'more', onclick: () => dialog.close() }, 'Close'),
  );
  if (!dialog.open) dialog.showModal();
}

// rows returns the buttons that j and k go through: tasks, and trials of open tasks.
const rows = () => [...byId('table').querySelectorAll('button.row')];

function moveBy(by) {
  const all = rows();
  const at = all.indexOf(document.activeElement);
  if (at < 0) return focusRow(by > 0 ? all[0] : all[all.length - 1]);
  if (all[at + by]) return focusRow(all[at + by]);
  if (!goTo(view.page + by)) return undefined;
  const next = rows();
  return focusRow(by > 0 ? next[0] : next[next.length - 1]);
}

function focusRow(button, block = 'nearest') {
  if (!button) return;
  button.focus({ preventScroll: true });
  button.closest('tr').scrollIntoView({ block });
}

// openRow opens or closes the task that has the focus.
function openRow(open) {
  const number = document.activeElement && document.activeElement.dataset.task;
  if (number !== undefined && expanded.has(Number(number)) !== open) toggle(TASKS[number], open);
}

function nextFilter() {
  const at = FILTERS.findIndex((f) => f.key === view.filter);
  change({ filter: FILTERS[(at + 1) % FILTERS.length].key });
}

function toggleCalls() {
  const calls = [...byId('viewer').querySelectorAll('.transcript details')];
  const open = !calls.every((c) => c.open);
  for (const call of calls) call.open = open;
}

const inTable = () => byId('table').contains(document.activeElement);

const PAGE_KEYS = {
  j: () => moveBy(1),
  k: () => moveBy(-1),
  f: nextFilter,
  d: nextTheme,
  p: () => goTo(view.page + 1),
  P: () => goTo(view.page - 1),
  '?': showKeys,
  '/': () => {
    byId('search').focus();
    byId('search').select();
  },
  ArrowDown: () => (inTable() ? moveBy(1) : false),
  ArrowUp: () => (inTable() ? moveBy(-1) : false),
  ArrowRight: () => (inTable() ? openRow(true) : false),
  ArrowLeft: () => (inTable() ? openRow(false) : false),
};

const VIEWER_KEYS = { j: () => step(1), k: () => step(-1), e: toggleCalls, d: nextTheme, '?': showKeys };

function watchKeys() {
  document.addEventListener('keydown', onKey, LISTEN);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || byId('keys').open) return;
  const typing = event.target.closest && event.target.closest('input, textarea, select');
  if (typing) {
    if (typing === byId('search') && (event.key === 'Escape' || event.key === 'Enter')) leaveSearch(event);
    return;
  }
  const keys = byId('viewer').open ? VIEWER_KEYS : PAGE_KEYS;
  if (Object.hasOwn(keys, event.key) && keys[event.key]() !== false) event.preventDefault();
}

// leaveSearch moves from the search to its results; Esc first clears the search.
function leaveSearch(event) {
  event.preventDefault();
  const input = byId('search');
  if (event.key === 'Escape' && input.value) {
    input.value = '';
    change({ search: '' });
    return;
  }
  input.blur();
  if (event.key === 'Enter') focusRow(rows()[0]);
}
