// The head of the page: the suite, its settings, and a few figures of the result.

const STATUSES = {
  running: 'Still running',
  completed: 'Completed',
  failed: 'Could not continue',
  cancelled: 'Cancelled',
  interrupted: 'Interrupted',
};

function showHead() {
  const c = RUN.config;
  put(byId('suite'), RUN.suite.name || RUN.suite.path);
  put(byId('about'), RUN.suite.description || '');
  byId('about').hidden = !RUN.suite.description;
  const facts = [
    ['Status', el('span', { class: `status s-${RUN.status}` }, STATUSES[RUN.status] || RUN.status)],
    ['Executor', [c.executor, c.agent].filter(Boolean).join(' · ')],
    ['Model', c.model],
    ['Skill', RUN.suite.skill],
    ['Sandbox', c.sandbox],
    ['Started', date(RUN.startedAt)],
    ['Took', known(RUN.tookMs) ? duration(RUN.tookMs) : null],
    ['Run', el('code', {}, RUN.runId)],
  ];
  put(
    byId('facts'),
    facts
      .filter(([, value]) => value)
      .map(([name, value]) => el('span', { class: 'fact' }, el('span', { class: 'name' }, name), ' ', value)),
  );
}

// figure returns a number with its name above and an explanation below.
const figure = (name, value, ...below) =>
  el(
    'div',
    { class: 'figure' },
    el('h2', {}, name),
    el('p', { class: 'value' }, value),
    below.map((b) => b && el('p', { class: 'below' }, b)),
  );

function showOverview() {
  const tasks = RUN.counted;
  const trials = RUN.countedTrials;
  const figures = [];
  if (tasks.total > 0) {
    figures.push(
      figure(
        'Tasks passed',
        [
          rateText(RUN.summary ? SUMMARY : rateOf(tasks)),
          el('small', {}, ` ${count(tasks.passed)} of ${count(countedOf(tasks))}`),
        ],
        SUMMARY.passRateInterval && [
          rateBar(SUMMARY.passRate, SUMMARY.passRateInterval, 64),
          ` ${between(SUMMARY.passRateInterval)}`,
        ],
      ),
      figure(
        'Trials passed',
        [
          rateText(SUMMARY.trials || rateOf(trials)),
          el('small', {}, ` ${count(trials.passed)} of ${count(countedOf(trials))}`),
        ],
        (SUMMARY.trials || {}).passRateInterval && [
          rateBar(SUMMARY.trials.passRate, SUMMARY.trials.passRateInterval, 64),
          ` ${between(SUMMARY.trials.passRateInterval)}`,
        ],
      ),
    );
  }
  if (SUMMARY.score) {
    const { mean, meanInterval } = SUMMARY.score;
    figures.push(
      figure('Mean score', score(mean), [
        rateBar(mean, meanInterval, 64),
        ` ${scores(meanInterval)}`,
      ]),
    );
  }
  if (SUMMARY.tools) {
    const { selection, params, overall } = SUMMARY.tools;
    figures.push(
      figure(
        'Tool score',
        score(overall),
        known(params) ? `tools ${score(selection)}, arguments ${score(params)}` : 'share of the expected calls that were made',
      ),
    );
  }
  figures.push(...smallFigures());
  put(byId('overview'), el('div', { class: 'figures' }, figures), legend(trials));
}

// countedOf returns the number of trials or tasks that count as results of the agent.
const countedOf = (c) => c.passed + c.failed + c.timeouts;

// rateOf returns the pass rate of a run that has no summary yet.
function rateOf(c) {
  if (!c.needsReview) return { passRate: countedOf(c) ? c.passed / countedOf(c) : null };
  const all = countedOf(c) + c.needsReview;
  return { passRateBounds: { low: c.passed / all, high: (c.passed + c.needsReview) / all } };
}

function smallFigures() {
  const list = [];
  const flaky = SUMMARY.flaky ?? TASKS.filter((t) => t.flaky && t.role === 'task').length;
  if (RUN.countedTrials.total > RUN.counted.total)
    list.push(figure('Flaky tasks', count(flaky), flaky ? 'passed only in some trials' : 'each task has the same result in all trials'));
  if (SUMMARY.suspicious)
    list.push(figure('Suspicious passes', count(SUMMARY.suspicious), 'trials that passed with moves of a forger; they count as passed'));
  if (SUMMARY.selfReported)
    list.push(figure('Self-reported', count(SUMMARY.selfReported), 'passes that depend on tool calls that only the agent says it made'));
  const time = RUN.trialMs;
  if (time) list.push(figure('Median time', duration(time.median), `of ${plural(time.n, 'counted trial')}; 95th percentile ${duration(time.p95)}`));
  const usage = SUMMARY.usage;
  if (usage) {
    const total = Math.max(usage.totalTokens || 0, usage.inputTokens + usage.outputTokens);
    list.push(figure('Tokens', short(total), `${short(usage.inputTokens)} read, ${short(usage.outputTokens)} written`));
    if (usage.costUsd)
      list.push(figure('Cost', money(usage.costUsd), costs(SUMMARY.usageByRole)));
  }
  return list;
}

// costs splits a cost by those who caused it.
function costs(roles) {
  const list = [
    ['agents', 'agent'],
    ['judges', 'judges'],
  ].filter(([, role]) => ((roles || {})[role] || {}).costUsd);
  return list.map(([name, role]) => `${name} ${money(roles[role].costUsd)}`).join(', ');
}

// legend returns the bar of all trials with the names of its parts.
function legend(counts) {
  const list = parts(counts);
  if (!list.length) return null;
  return el(
    'div',
    { class: 'legend' },
    shares(counts, 1000, saying(counts)),
    el(
      'ul',
      {},
      list.map(([letter, n]) => el('li', {}, verdict(letter), ' ', el('span', { class: 'number' }, count(n)))),
      el('li', { class: 'quiet' }, 'of ', plural(counts.total, 'trial')),
    ),
  );
}

// showNotes shows what a reader must know before trusting the numbers.
function showNotes() {
  const notes = [];
  const note = (kind, ...text) => notes.push(el('li', { class: kind }, text));
  if (RUN.status === 'failed')
    note('bad', el('strong', {}, 'The run could not continue: '), RUN.error || 'no reason was recorded');
  if (RUN.status === 'cancelled')
    note('warn', RUN.error || 'The run was cancelled. Remaining trials were not finished.');
  if (RUN.status === 'interrupted')
    note('warn', 'The process that executed the run ended before the run did. Remaining trials were not finished.');
  if (RUN.status === 'running' && !HOST.signal) note('warn', 'The run was still running when this report was written.');
  if (RUN.damage) note('bad', el('strong', {}, 'The record is damaged: '), RUN.damage);
  if (RUN.unverifiable) note('warn', sentence(RUN.unverifiable));
  if (SUMMARY.decision) note('plain', el('strong', {}, sentence(SUMMARY.decision.text)));
  if ((SUMMARY.missed || []).length)
    note('bad', el('strong', {}, 'Under their threshold: '), SUMMARY.missed.join(', '));
  if (RUN.countedTrials.errors)
    note(
      'warn',
      `${plural(RUN.countedTrials.errors, 'trial')} ended in error. Errors are not the agent’s fault and are not counted.`,
    );
  for (const text of RUN.judgePositions || []) note('warn', sentence(text));
  for (const text of RUN.noise || []) note('warn', sentence(text));
  const waiting = RUN.countedTrials.needsReview + (((SUMMARY.baseline || {}).trials || {}).needsReview || 0) || 0;
  if (waiting)
    note(
      'warn',
      `${plural(waiting, 'trial waits', 'trials wait')} for a person’s score: `,
      el('code', {}, `waza review ${RUN.runId}`),
    );
  if (SUMMARY.trialsSaved) {
    const why = SUMMARY.decision ? 'the question did not need them' : 'the verdict was already decided';
    note('plain', `${plural(SUMMARY.trialsSaved, 'trial was', 'trials were')} saved because ${why}.`);
  }
  if (SUMMARY.trialsCached)
    note(
      'plain',
      `${plural(SUMMARY.trialsCached, 'trial was', 'trials were')} reused from earlier runs because their inputs have not changed.`,
    );
  if (RUN.amendedAt) note('plain', `Regraded on ${date(RUN.amendedAt)}.`);
  if (RUN.against) note('plain', againstNote());
  put(byId('notes'), el('ul', {}, notes));
  byId('notes').hidden = notes.length === 0;
}

function againstNote() {
  const a = RUN.against;
  const changed = TASKS.filter((t) => t.role === 'task' && isChanged(t)).length;
  const fresh = TASKS.filter((t) => t.role === 'task' && t.was && t.was.new).length;
  const gone = (a.gone || []).length;
  return [
    'Compared with run ',
    el('code', {}, a.runId),
    ` of ${date(a.startedAt)}`,
    a.model && a.model !== RUN.config.model ? ` (${a.model})` : '',
    `: ${plural(changed, 'task has', 'tasks have')} other results`,
    fresh ? `, ${count(fresh)} new` : '',
    gone ? `, ${count(gone)} not in this run` : '',
    '.',
  ];
}

function showFoot() {
  const c = RUN.config;
  const facts = [
    ['Suite', RUN.suite.path],
    ['Version', RUN.suite.version],
    ['Trials per task', c.trials && count(c.trials)],
    ['Workers', c.workers && count(c.workers)],
    ['Time limit', c.timeoutSeconds && duration(c.timeoutSeconds * 1000)],
    ['Judge', c.judgeModel],
    ['Attempts', c.maxAttempts > 1 && count(c.maxAttempts)],
    ['Only tasks', (c.taskFilters || []).join(', ')],
    ['Only tags', (c.tagFilters || []).join(', ')],
  ].filter(([, value]) => value);
  put(
    byId('foot'),
    el(
      'p',
      { class: 'facts' },
      facts.map(([name, value]) => el('span', { class: 'fact' }, el('span', { class: 'name' }, name), ' ', value)),
    ),
    el('p', { class: 'quiet' }, HOST.loadTrial
        ? 'Intervals are 95 % intervals.'
        : 'Intervals are 95 % intervals. Made by waza; this page loads nothing and sends nothing.'),
  );
}
