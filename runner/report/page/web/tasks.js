// The table of tasks: filters, search, sorting, pages. A row opens to show its trials.

const PAGE = 100;

const FILTERS = [
  { key: 'all', title: 'All', takes: () => true },
  { key: 'failed', title: 'Failed', takes: (t) => t.letter === 'f' || t.letter === 't' },
  { key: 'flaky', title: 'Flaky', takes: (t) => Boolean(t.flaky) },
  { key: 'suspicious', title: 'Suspicious', takes: (t) => t.suspicious > 0 },
  { key: 'errors', title: 'Errors', takes: (t) => t.letter === 'e' || t.counts.errors > 0 },
  { key: 'changed', title: 'Other results', takes: isChanged, when: () => Boolean(RUN.against) },
].filter((f) => !f.when || f.when());

const ROLES = [
  ['task', 'Tasks'],
  ['baseline', capital(RUN.arm || 'without skills')],
  ['trigger', 'Trigger tests'],
].filter(([role]) => TASKS.some((t) => t.role === role));

const view = { role: (ROLES[0] || ['task'])[0], filter: 'all', search: '', sort: null, down: false, page: 0 };
const expanded = new Set(); // numbers of tasks whose trials are shown
let listed = []; // the tasks that match, sorted

// list finds and sorts the tasks to show.
function list() {
  const filter = FILTERS.find((f) => f.key === view.filter);
  const words = view.search.toLowerCase().split(/\s+/).filter(Boolean);
  listed = TASKS.filter((t) => t.role === view.role && filter.takes(t) && words.every((w) => textOf(t).includes(w)));
  const column = COLUMNS.find((c) => c.key === view.sort);
  if (column) listed.sort((a, b) => compare(column.by(a), column.by(b), view.down) || a.number - b.number);
}

function compare(a, b, down) {
  if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
  const order = a < b ? -1 : a > b ? 1 : 0;
  return down ? -order : order;
}

// showTasks updates the table after any change.
function showTasks() {
  list();
  view.page = Math.min(view.page, Math.max(0, Math.ceil(listed.length / PAGE) - 1));
  showChoices();
  showTableHead();
  showRows();
  showDistributions(listed);
  announce(`${plural(listed.length, 'task')} listed`);
}

function showChoices() {
  const own = TASKS.filter((t) => t.role === view.role);
  put(
    byId('roles'),
    ROLES.map(([role, title]) =>
      choice(title, TASKS.filter((t) => t.role === role).length, view.role === role, () =>
        change({ role, filter: 'all' }),
      ),
    ),
  );
  byId('roles').hidden = ROLES.length < 2;
  put(
    byId('filters'),
    FILTERS.map((f) => {
      const n = own.filter(f.takes).length;
      return choice(f.title, n, view.filter === f.key, () => change({ filter: f.key }), f.key);
    }),
  );
}

// choice returns a button of a row in which one button is pressed.
const choice = (title, n, pressed, onclick, key) =>
  el(
    'button',
    { type: 'button', 'data-filter': key, 'aria-pressed': String(pressed), onclick, class: n === 0 ? 'none' : null },
    title,
    ' ',
    el('span', { class: 'number' }, count(n)),
  );

// change changes the listed tasks. The pressed button keeps the focus.
function change(to) {
  Object.assign(view, { page: 0 }, to);
  const key = document.activeElement && document.activeElement.dataset.filter;
  showTasks();
  const again = key && byId('filters').querySelector(`[data-filter="${key}"]`);
  if (again) again.focus();
}

function showTableHead() {
  const table = byId('table');
  put(
    table.tHead,
    el(
      'tr',
      {},
      COLUMNS.map((c) => {
        const sorted = view.sort === c.key;
        return el(
          'th',
          {
            scope: 'col',
            class: c.number ? 'n' : null,
            'aria-sort': sorted ? (view.down ? 'descending' : 'ascending') : null,
          },
          el(
            'button',
            { type: 'button', 'data-sort': c.key, 'data-tip': c.tip || null, onclick: () => sortBy(c) },
            c.title,
            el('span', { class: 'arrow', 'aria-hidden': 'true' }, sorted ? (view.down ? '↓' : '↑') : ''),
          ),
        );
      }),
    ),
  );
}

// sortBy sorts by a column, then reverses the order, then returns to the order of the
// suite.
function sortBy(column) {
  const first = Boolean(column.down);
  if (view.sort !== column.key) Object.assign(view, { sort: column.key, down: first });
  else if (view.down === first) view.down = !first;
  else Object.assign(view, { sort: null, down: false });
  view.page = 0;
  showTasks();
  byId('table').tHead.querySelector(`[data-sort="${column.key}"]`).focus();
}

function showRows(from = view.page * PAGE, to = from + PAGE) {
  const table = byId('table');
  for (const body of [...table.tBodies]) body.remove();
  table.append(...listed.slice(from, to).map(taskBody));
  byId('empty').hidden = listed.length > 0;
  showPager();
}

// taskBody returns the row of a task and, if it is open, its trials.
function taskBody(task) {
  const open = expanded.has(task.number);
  return el(
    'tbody',
    { id: `body-${task.number}`, class: open ? 'open' : null },
    el(
      'tr',
      {
        class: 'task',
        onclick: (event) => {
          if (!event.target.closest('button, a, [data-trial]')) toggle(task);
        },
      },
      COLUMNS.map((c) => c.cell(task)),
    ),
    open &&
      el(
        'tr',
        { class: 'inner' },
        el('td', { colspan: COLUMNS.length, id: `trials-${task.number}` }, taskDetails(task)),
      ),
  );
}

function toggle(task, open = !expanded.has(task.number)) {
  if (open) expanded.add(task.number);
  else expanded.delete(task.number);
  const body = byId(`body-${task.number}`);
  if (!body) return;
  const focused = body.contains(document.activeElement);
  body.replaceWith(taskBody(task));
  if (focused) byId(`task-${task.number}`).focus();
  if (open) setHash(hashOf(task));
}

function showPager() {
  const pages = Math.ceil(listed.length / PAGE);
  const pager = byId('pager');
  pager.hidden = pages < 2;
  if (pages < 2) return;
  const first = view.page * PAGE;
  put(
    pager,
    el('button', { type: 'button', disabled: view.page === 0, onclick: () => goTo(view.page - 1) }, '‹ Back'),
    el('span', {}, `${count(first + 1)}–${count(Math.min(listed.length, first + PAGE))} of ${count(listed.length)}`),
    el('button', { type: 'button', disabled: view.page === pages - 1, onclick: () => goTo(view.page + 1) }, 'On ›'),
  );
}

// goTo shows another page of tasks.
function goTo(page) {
  if (page < 0 || page * PAGE >= listed.length) return false;
  view.page = page;
  showRows();
  byId('tasks').scrollIntoView();
  return true;
}

// reveal lists and opens a task, whatever the filter.
function reveal(task) {
  if (!listed.includes(task)) Object.assign(view, { role: task.role, filter: 'all', search: '' });
  byId('search').value = view.search;
  expanded.add(task.number);
  list();
  view.page = Math.floor(listed.indexOf(task) / PAGE);
  showTasks();
}
