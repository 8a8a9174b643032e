// The viewer of one trial, a sheet over the page. The address opens and closes it: see
// route in main.js.

let viewed = -1; // the index of the open trial

// openTrial shows a trial, by its index in the columns.
const openTrial = (at) => setHash(hashOf(taskOf(at), TRIALS.num[at]), true);

async function showTrial(at) {
  const viewer = byId('viewer');
  viewed = at;
  put(viewer, trialTitle(at), el('p', { class: 'quiet loading' }, 'Unpacking…'));
  if (!viewer.open) viewer.showModal();
  viewer.scrollTop = 0;
  let body;
  try {
    const trial = await loadTrial(at);
    body = trial ? trialBody(trial) : leftOut();
  } catch (error) {
    body = el('p', { class: 'v-error' }, `Cannot read the transcript: ${error.message}`);
  }
  if (viewed !== at || ended()) return; // another trial was opened in the meantime
  put(viewer, trialTitle(at, Array.isArray(body) ? partLinks(body) : null), el('div', { class: 'body' }, body));
  viewer.dataset.shown = hashOf(taskOf(at), TRIALS.num[at]);
  viewer.querySelector('h2').focus();
}

const leftOut = () =>
  el(
    'p',
    {},
    'This report does not contain the transcript because it would be too large. ',
    el('code', {}, `waza runs show ${RUN.runId} --json`),
    ' shows it.',
  );

function trialTitle(at, links) {
  const task = taskOf(at);
  const was = TRIALS.was ? TRIALS.was[at] : ' ';
  return el(
    'header',
    { class: 'sheet' },
    el(
      'div',
      {},
      el(
        'p',
        { class: 'quiet' },
        el('a', { href: hashOf(task), onclick: leaveTo(task) }, task.id),
        HOST.openTask && place('Go to the task', () => HOST.openTask(task.id)),
        task.name && task.name !== task.id ? ` ${task.name}` : '',
      ),
      el(
        'h2',
        { id: 'viewer-title', tabindex: -1 },
        `Trial ${TRIALS.num[at]}`,
        ' ',
        verdict(TRIALS.verdict[at]),
        was !== ' ' &&
          was !== TRIALS.verdict[at] &&
          el('span', { class: 'badge' }, `was ${VERDICTS[was].word.toLowerCase()}`),
      ),
      links,
    ),
    el(
      'div',
      { class: 'tools' },
      stepButton('Previous trial', '‹', at - 1),
      stepButton('Next trial', '›', at + 1),
      el('button', { type: 'button', class: 'tool', 'aria-label': 'Close', onclick: closeViewer }, '✕'),
    ),
  );
}

// leaveTo follows a link to a task, even if the window has no address of its own.
const leaveTo = (task) => (event) => {
  event.preventDefault();
  event.stopPropagation();
  address.set(hashOf(task), true);
  route();
};

// place returns a button that shows a declaration in the host's editor.
const place = (name, onclick) =>
  el(
    'button',
    { type: 'button', class: 'goto', 'aria-label': name, 'data-tip': name, onclick },
    svg('svg', { viewBox: '0 0 16 16', width: 13, height: 13, 'aria-hidden': 'true' }, svg('path', { d: 'M9.5 1.8H3.4v12.4h9.2V5zM9.5 1.8V5h3.1M5.8 8.2h4.4M5.8 10.9h4.4' })),
  );

const stepButton = (name, sign, at) =>
  el(
    'button',
    {
      type: 'button',
      class: 'tool',
      'aria-label': name,
      'data-tip': name,
      disabled: !isTrial(at),
      onclick: () => openTrial(at),
    },
    sign,
  );

const isTrial = (at) => at >= 0 && at < TRIALS.num.length;

// step goes to the previous or next trial.
function step(by) {
  if (isTrial(viewed + by)) openTrial(viewed + by);
}

function closeViewer() {
  if (viewed >= 0) setHash(hashOf(taskOf(viewed)));
  hideViewer();
}

function hideViewer() {
  const at = viewed;
  viewed = -1;
  byId('viewer').close();
  byId('viewer').replaceChildren();
  const back = at < 0 ? null : document.querySelector(`[data-trial-row="${at}"]`) || byId(`task-${taskOf(at).number}`);
  if (back) back.focus();
}

// part returns a section of the sheet.
const part = (title, ...what) => el('section', { 'data-part': title }, el('h3', {}, title), what);

// partLinks returns links to the sections, which can be far below.
const partLinks = (sections) =>
  el(
    'nav',
    { class: 'parts', 'aria-label': 'Parts of the trial' },
    sections
      .filter((s) => s.dataset.part)
      .map((s) => el('button', { type: 'button', onclick: () => s.scrollIntoView() }, s.dataset.part)),
  );

function trialBody(t) {
  const list = [trialFacts(t)];
  if (t.error) list.push(el('p', { class: 'why v-error' }, t.error));
  if (t.cut)
    list.push(
      el(
        'p',
        { class: 'quiet' },
        `Long texts are shortened by ${bytes(t.cut)} in total; `,
        el('code', {}, `waza runs show ${RUN.runId} --json`),
        ' shows all of them.',
      ),
    );
  if (t.graders && t.graders.length) list.push(part('Graders', graders(t.graders)));
  if (t.suspicions && t.suspicions.length) list.push(part('Suspicions', suspicions(t.suspicions)));
  list.push(part('Prompt', prose(t.prompt)), part('Output', prose(t.output)));
  if (t.files || t.incomplete) list.push(part('Files', files(t.files || [], t.incomplete)));
  list.push(part('Transcript', transcript(t.transcript, { 'The prompt': t.prompt || '', 'The output': t.output })));
  if (t.attempts && t.attempts.length) list.push(part('Earlier attempts', t.attempts.map(attempt)));
  return list;
}

// suspicions lists moves that a forger would make. They change no verdict.
const suspicions = (list) =>
  el(
    'ul',
    { class: 'graders' },
    list.map((s) =>
      el(
        'li',
        {},
        el('div', { class: 'grader' }, el('strong', {}, s.rule), el('span', { class: 'quiet' }, s.place)),
        el('p', { class: 'feedback' }, s.evidence),
      ),
    ),
  );

// spent returns the usage of agent and judges in all attempts.
function spent(t, what) {
  const { agent, judges } = t.spent || {};
  return ((agent || {})[what] || 0) + ((judges || {})[what] || 0);
}

// conditionFacts returns what the machine, the waits and the providers did to an attempt.
function conditionFacts(c) {
  const r = c.requests || {};
  return [
    ['Throttled', r.throttled > 0 && `${count(r.throttled)} of ${plural(r.sent, 'request')}`],
    ['Sent again', r.retried > 0 && plural(r.retried, 'request')],
    ['Requests waited', r.waitedMs > 0 && duration(r.waitedMs)],
    ['Waited before', c.waitedMs > 0 && duration(c.waitedMs)],
    ['Programs waited for processors', known(c.cpuWait) && `${percent(c.cpuWait)} of the time`],
    ['For memory', known(c.memoryWait) && `${percent(c.memoryWait)} of the time`],
    ['Load per processor', known(c.load) && c.load.toFixed(2)],
    ['Available memory', known(c.memoryFree) && percent(c.memoryFree)],
  ];
}

function trialFacts(t) {
  const { agent, judges } = t.spent || {};
  const u = agent || judges ? { inputTokens: spent(t, 'inputTokens'), outputTokens: spent(t, 'outputTokens') } : null;
  const facts = [
    ['Score', known(t.score) && score(t.score)],
    ['Time', !t.untimed && duration(t.durationMs)],
    ['Agent', t.executorMs > 0 && duration(t.executorMs)],
    ['Startup', t.startupMs > 0 && duration(t.startupMs)],
    ['Tokens', u && `${short(u.inputTokens)} read, ${short(u.outputTokens)} written`],
    ['Cost', u && spent(t, 'costUsd') > 0 && money(spent(t, 'costUsd'))],
    ['Judges', judges && judges.costUsd > 0 && `${money(judges.costUsd)} of it`],
    ['First token', t.speed && duration(t.speed.firstTokenMs)],
    ['Speed', t.speed && t.speed.tokensPerSecond > 0 && `${short(t.speed.tokensPerSecond)} tokens/s`],
    ['Requests', t.speed && t.speed.requests > 0 && count(t.speed.requests)],
    ...conditionFacts(t.conditions || {}),
    ['Started', t.startedAt && date(t.startedAt)],
    ['Ended', t.endedEarly && 'early, when its answer was decided'],
    ['Attempts', t.attempts && count(t.attempts.length + 1)],
    ['Sandbox', t.tier],
    ['From', t.cached && t.cached.runId],
  ].filter(([, text]) => text && text !== DASH);
  return el(
    'p',
    { class: 'facts' },
    facts.map(([name, text]) => el('span', { class: 'fact' }, el('span', { class: 'name' }, name), ' ', text)),
  );
}

function graders(list) {
  return el(
    'ul',
    { class: 'graders' },
    list.map((g) => {
      const letter = g.error ? 'e' : g.needsReview ? 'r' : g.passed ? 'p' : 'f';
      return el(
        'li',
        {},
        el(
          'div',
          { class: 'grader' },
          mark(letter),
          el('strong', {}, g.name),
          g.type !== g.name && el('span', { class: 'quiet' }, g.type),
          HOST.openGrader && place('Go to the grader', () => HOST.openGrader(taskOf(viewed).id, g.name)),
          el('span', { class: 'took' }, g.error ? 'error' : g.needsReview ? 'waits for a person' : score(g.score)),
          g.weight !== 1 && el('span', { class: 'quiet' }, `weight ${g.weight}`),
          g.durationMs > 999 && el('span', { class: 'quiet' }, duration(g.durationMs)),
        ),
        g.error && el('p', { class: 'v-error' }, g.error),
        g.feedback && !isChecks(g.details) && folded(g.feedback, (text) => el('p', { class: 'feedback' }, text)),
        details(g.details),
      );
    }),
  );
}

const isChecks = (d) =>
  Array.isArray(d) &&
  d.length > 0 &&
  d.every((c) => c && typeof c === 'object' && typeof c.check === 'string' && typeof c.passed === 'boolean');

// details are mostly checks; those that are not met come first.
function details(d) {
  if (d === undefined || d === null) return null;
  if (!isChecks(d)) return disclosure(el('span', { class: 'quiet' }, 'Details'), () => value(d));
  return el(
    'ul',
    { class: 'checks' },
    [...d]
      .sort((a, b) => a.passed - b.passed)
      .slice(0, 100)
      .map((c) =>
        el(
          'li',
          { class: c.passed ? 'met' : null },
          mark(c.passed ? 'p' : 'f', 10),
          ' ',
          c.check,
          c.detail && expected(c.detail),
        ),
      ),
  );
}

// expected shows the expected and the actual value below each other, if a check contains
// both.
function expected(detail) {
  const found = expectation(detail);
  if (!found) return el('p', { class: 'feedback' }, detail);
  return [
    el('p', { class: 'feedback' }, found.about),
    el(
      'pre',
      { class: 'diff' },
      el('span', { class: 'minus' }, `- expected ${found.expected}`),
      el('span', { class: 'plus' }, `+ got      ${found.got}`),
    ),
  ];
}

const EXPECTED = 'expected ';
const GOT = ', got ';
const MOST_PLACES = 20; // in which "expected" is searched

// expectation splits a text such as "line 3: expected a, got b", and returns null for
// other texts. An agent may have written the text. The time is linear in its length; a
// regular expression would take cubic time.
function expectation(detail) {
  let at = -1;
  for (let place = 0; place < MOST_PLACES; place++) {
    at = detail.indexOf(EXPECTED, at + 1);
    if (at < 0) return null;
    const before = detail.slice(Math.max(0, at - 2), at);
    if (before !== ': ' && before !== ', ') continue;
    const from = at + EXPECTED.length;
    const end = endOfExpected(detail, from);
    if (end >= 0)
      return { about: detail.slice(0, at - 2), expected: detail.slice(from, end), got: detail.slice(end + GOT.length) };
  }
  return null;
}

// endOfExpected returns the last place where ", got " separates two values, the first of
// which starts at from, or -1. A value is a text in quotes, or a line without quotes.
function endOfExpected(detail, from) {
  const quote = detail.lastIndexOf('"');
  const plain = Math.max(quote, detail.lastIndexOf('\n')); // later values have no quotes
  const quoted = detail[from] === '"';
  const stop = quoted ? detail.length : from + detail.slice(from).search(/["\n]|$/);
  for (let at = detail.lastIndexOf(GOT); at > from; at = detail.lastIndexOf(GOT, at - 1)) {
    const got = at + GOT.length;
    const isPlain = got > plain && got < detail.length;
    const isQuoted = detail[got] === '"' && quote === detail.length - 1 && quote > got;
    if (!isPlain && !isQuoted) continue;
    if (quoted ? at > from + 1 && detail[at - 1] === '"' : at <= stop) return at;
  }
  return -1;
}

function attempt(a, i) {
  return disclosure(
    [`Attempt ${i + 1} `, verdict(letterOf(a.verdict)), el('span', { class: 'took' }, duration(a.durationMs))],
    () =>
      [
        a.error && el('p', { class: 'v-error' }, a.error),
        a.graders && a.graders.length > 0 && graders(a.graders),
        el('h4', {}, 'Transcript'),
        transcript(a.transcript),
        el('h4', {}, 'Output'),
        prose(a.output),
      ]
        .flat()
        .filter(Boolean),
  );
}
