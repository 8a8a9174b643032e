// Start: theme, address, first display.

const THEMES = { auto: ['System', '◐'], light: ['Light', '○'], dark: ['Dark', '●'] };

// remembered keeps a choice beyond this visit, if the browser allows that for files.
const remembered = {
  get() {
    try {
      return localStorage.getItem('waza-theme');
    } catch {
      return null;
    }
  },
  set(theme) {
    try {
      localStorage.setItem('waza-theme', theme);
    } catch {
      /* it is forgotten then */
    }
  },
};

function setTheme(theme) {
  const name = Object.hasOwn(THEMES, theme) ? theme : 'auto';
  document.documentElement.dataset.theme = name;
  const [title, sign] = THEMES[name];
  put(byId('theme'), el('span', { 'aria-hidden': 'true' }, sign), ' ', title);
  byId('theme').setAttribute('aria-label', `Colours: ${title.toLowerCase()}`);
}

function nextTheme() {
  if (HOST.themed) return;
  const names = Object.keys(THEMES);
  const next = names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length];
  setTheme(next);
  remembered.set(next);
}

// Addresses: #task/<id> and #task/<id>/trial/<number>.
const hashOf = (task, num) => `#task/${encodeURIComponent(task.id)}${num === undefined ? '' : `/trial/${num}`}`;

// setHash changes the address; with a new history entry, the reader can go back.
function setHash(hash, enter = false) {
  if (hash === address.get()) return enter ? route() : undefined;
  address.set(hash, enter && viewed < 0);
  return enter ? route() : undefined;
}

function parseHash() {
  const found = /^#task\/([^/]+)(?:\/trial\/(\d+))?$/.exec(address.get());
  if (!found) return {};
  try {
    const task = TASKS[TASK_NUMBERS.get(decodeURIComponent(found[1]))];
    return { task, at: task && found[2] !== undefined ? findTrial(task, Number(found[2])) : -1 };
  } catch {
    return {}; // the address is not of this page
  }
}

// route shows the task or trial of the address.
function route() {
  const { task, at } = parseHash();
  if (task && at >= 0) {
    if (!byId(`trials-${task.number}`)) reveal(task);
    return showTrial(at);
  }
  if (byId('viewer').open) hideViewer();
  if (task) {
    if (!byId(`trials-${task.number}`)) reveal(task);
    focusRow(byId(`task-${task.number}`), 'start');
  }
  return undefined;
}

// Paper shows more rows than a screen.
const MOST_PRINTED = 1000;

function start() {
  beginTheme();
  listen();
  watchKeys();
  watchTips();
  if (HOST.state) restore(HOST.state);
  showHead();
  showOverview();
  showNotes();
  showMeasures();
  showTasks();
  showFoot();
  if (!HOST.state || !stay()) route();
  return { state, go };
}

function beginTheme() {
  byId('theme').hidden = Boolean(HOST.themed);
  if (HOST.themed) return;
  setTheme(remembered.get());
  byId('theme').addEventListener('click', nextTheme, LISTEN);
}

function listen() {
  byId('help').addEventListener('click', showKeys, LISTEN);
  const viewer = byId('viewer');
  viewer.addEventListener(
    'cancel',
    (event) => {
      event.preventDefault();
      closeViewer();
    },
    LISTEN,
  );
  viewer.addEventListener('click', (event) => event.target === viewer && closeViewer(), LISTEN);
  let waiting = 0;
  byId('search').addEventListener(
    'input',
    (event) => {
      clearTimeout(waiting);
      waiting = setTimeout(() => !ended() && change({ search: event.target.value }), 60);
    },
    LISTEN,
  );
  addEventListener('hashchange', route, LISTEN);
  addEventListener('popstate', route, LISTEN);
  addEventListener('beforeprint', () => showRows(0, MOST_PRINTED), LISTEN);
  addEventListener('afterprint', () => showRows(), LISTEN);
}

// go shows the task or trial of an address.
function go(hash) {
  address.set(hash);
  return route();
}

// ended reports whether a newer display has replaced this one.
const ended = () => Boolean(HOST.signal && HOST.signal.aborted);

// state returns the reader's choices, with names that are also valid for newer data.
function state() {
  return {
    address: address.get(),
    view: { ...view, search: byId('search').value }, // includes text that was just typed
    expanded: [...expanded].map((number) => TASKS[number].id),
    listed: [...chosen].map(([number, letter]) => [TASKS[number].id, letter]),
    measured,
  };
}

// restore applies the state of an earlier display.
function restore(was) {
  Object.assign(view, was.view, { role: ROLES.some(([role]) => role === was.view.role) ? was.view.role : view.role });
  if (!FILTERS.some((f) => f.key === view.filter)) view.filter = 'all';
  byId('search').value = view.search;
  for (const id of was.expanded) if (TASK_NUMBERS.has(id)) expanded.add(TASK_NUMBERS.get(id));
  for (const [id, letter] of was.listed) if (TASK_NUMBERS.has(id)) chosen.set(TASK_NUMBERS.get(id), letter);
  measured = was.measured;
}

// stay leaves an open trial unchanged, so that its reader is not disturbed. It renews only
// the head, which can link to new trials. It reports whether nothing else has to be shown.
function stay() {
  const { task, at } = parseHash();
  const viewer = byId('viewer');
  if (!viewer.open) return !(task && at >= 0);
  if (!task || at < 0 || viewer.dataset.shown !== hashOf(task, TRIALS.num[at])) return false;
  viewed = at;
  const links = viewer.querySelector('.sheet .parts');
  viewer.querySelector('.sheet').replaceWith(trialTitle(at, links));
  return true;
}
