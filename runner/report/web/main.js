// Begin: theme, address, first showing.

const THEMES = { auto: ['As the system', '◐'], light: ['Light', '○'], dark: ['Dark', '●'] };

// remembered keeps a choice beyond this visit, where the browser lets a file do that.
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
  const names = Object.keys(THEMES);
  const next = names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length];
  setTheme(next);
  remembered.set(next);
}

// Addresses: #task/<id> and #task/<id>/trial/<number>.
const hashOf = (task, num) => `#task/${encodeURIComponent(task.id)}${num === undefined ? '' : `/trial/${num}`}`;

// setHash changes the address; one that is entered is a step to come back from.
function setHash(hash, enter = false) {
  if (hash === location.hash) return enter ? route() : undefined;
  history[enter && viewed < 0 ? 'pushState' : 'replaceState'](null, '', hash);
  return enter ? route() : undefined;
}

function parseHash() {
  const found = /^#task\/([^/]+)(?:\/trial\/(\d+))?$/.exec(location.hash);
  if (!found) return {};
  try {
    const task = TASKS[TASK_NUMBERS.get(decodeURIComponent(found[1]))];
    return { task, at: task && found[2] !== undefined ? findTrial(task, Number(found[2])) : -1 };
  } catch {
    return {}; // not an address of this page
  }
}

// route shows what the address names.
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

function begin() {
  setTheme(remembered.get());
  byId('theme').addEventListener('click', nextTheme);
  byId('help').addEventListener('click', showKeys);
  byId('viewer').addEventListener('cancel', (event) => {
    event.preventDefault();
    closeViewer();
  });
  byId('viewer').addEventListener('click', (event) => {
    if (event.target === byId('viewer')) closeViewer();
  });
  let waiting = 0;
  byId('search').addEventListener('input', (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => change({ search: event.target.value }), 60);
  });
  addEventListener('hashchange', route);
  addEventListener('popstate', route);
  addEventListener('beforeprint', () => showRows(0, MOST_PRINTED));
  addEventListener('afterprint', () => showRows());
  watchKeys();
  watchTips();
  showHead();
  showOverview();
  showNotes();
  showMeasures();
  showTasks();
  showFoot();
  route();
  performance.mark('shown');
}

begin();
