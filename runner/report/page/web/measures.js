// What is measured over the whole run: the matrix of a run over several models or
// parameters, metrics, groups, the comparison with a baseline, trigger tests, and how far judges agree with people.

function showMeasures() {
  const blocks = [judged(), benchmark(), matrix(), metrics(), groups(), baseline(), triggers(), calibrations()].flat().filter(Boolean);
  put(byId('measures'), blocks);
  byId('measures').hidden = blocks.length === 0;
}

// block is a small table with a title, and a sentence above it if need be.
function block(title, about, head, rows) {
  return el(
    'div',
    { class: 'block' },
    el('h2', {}, title),
    typeof about === 'string' ? el('p', { class: 'quiet' }, about) : about,
    rows.length > 0 &&
      el(
        'div',
        { class: 'scroll' },
        el(
          'table',
          {},
          head &&
            el(
              'thead',
              {},
              el(
                'tr',
                {},
                head.map((h, i) => el('th', { scope: 'col', class: i ? 'n' : null }, h)),
              ),
            ),
          el('tbody', {}, rows),
        ),
      ),
  );
}

const row = (name, ...cells) =>
  el(
    'tr',
    {},
    el('th', { scope: 'row' }, name),
    cells.map((c) => el('td', { class: 'n' }, c)),
  );

const unmeasured = (note) => `Not measured: ${(note || 'nothing to measure').replace(/^not measured: /, '')}.`;

const MOST_CELLS = 12;
const MOST_MATRIX_TASKS = 40;

// matrix holds the tasks of a run against the models and parameters they were done
// with.
function matrix() {
  const own = TASKS.filter((t) => t.cell && t.role === 'task');
  const cells = [...new Set(own.map((t) => t.cell.name))];
  if (cells.length < 2 || cells.length > MOST_CELLS) return null; // groups tell of them, too
  const byTask = new Map();
  for (const t of own) byTask.set(t.task || t.id, (byTask.get(t.task || t.id) || new Map()).set(t.cell.name, t));
  const rows = [...byTask]
    .slice(0, MOST_MATRIX_TASKS)
    .map(([id, found]) => row(id, ...cells.map((name) => matrixCell(found.get(name)))));
  const about = byTask.size > rows.length ? `The first ${count(rows.length)} of ${plural(byTask.size, 'task')}.` : null;
  const made = block('Matrix', about, ['Task', ...cells], rows);
  made.classList.add('matrix');
  made.classList.toggle('whole', cells.length > 3);
  return made;
}

function matrixCell(task) {
  if (!task) return DASH;
  return el(
    'a',
    {
      class: 'plain',
      href: hashOf(task),
      'data-tip': task.interval ? `95 % interval ${between(task.interval)}` : null,
    },
    mark(task.letter),
    ' ',
    rateText({ passRate: task.rate, passRateBounds: task.bounds }, task.passThreshold ?? 1),
  );
}

function metrics() {
  const list = SUMMARY.metrics || [];
  if (!list.length) return null;
  return block(
    'Metrics',
    null,
    ['Metric', 'Value', 'At least', ''],
    list.map((m) => {
      const ok = m.passed === null || m.threshold === 0 ? null : m.passed;
      return row(
        m.name,
        m.value === null ? el('span', { class: 'quiet', 'data-tip': m.note || null }, 'not measured') : score(m.value, m.threshold),
        m.threshold ? String(m.threshold) : DASH,
        ok === null ? '' : ok ? [mark('p'), ' met'] : el('strong', { class: 'v-failed' }, mark('f'), ' missed'),
      );
    }),
  );
}

function groups() {
  const list = SUMMARY.groups || [];
  if (!list.length) return null;
  const scored = list.some((g) => g.score);
  const tools = list.some((g) => g.tools);
  const made = block(
    'Groups',
    tuned(),
    [
      ...['Group', 'Trials', 'Pass rate', 'Interval'],
      ...(scored ? ['Score'] : []),
      ...(tools ? ['Tools', 'Arguments', 'Tool score'] : []),
    ],
    list.map((g) =>
      row(
        g.group,
        count(g.total),
        [rateBar(g.passRate, g.passRateInterval, 72), ' ', rateText(g)],
        between(g.passRateInterval) || DASH,
        ...(scored ? [g.score ? score(g.score.mean) : DASH] : []),
        ...(tools ? ['selection', 'params', 'overall'].map((key) => score((g.tools || {})[key])) : []),
      ),
    ),
  );
  made.classList.toggle('whole', tools || Boolean(RUN.benchmark) || SUMMARY.tune !== undefined);
  return made;
}

// tuned says which cell of a tuning is best, and which may be as good; null without one.
function tuned() {
  const t = SUMMARY.tune;
  if (!t) return null;
  return [el('p', { class: 'quiet' }, `Best cell: ${t.best}. ${rivals(t)}`), ...(t.prompts || []).map(proposed)];
}

function rivals(t) {
  if (t.note) return sentence(t.note);
  if (!t.rivals) return '';
  const shown = t.rivals.slice(0, MOST_CELLS);
  const more = t.rivals.length > shown.length ? ` and ${count(t.rivals.length - shown.length)} more` : '';
  return `May be as good, these trials do not separate them: ${shown.join('; ')}${more}.`;
}

// proposed shows a system prompt that a model proposed.
const proposed = (p) =>
  el(
    'details',
    {},
    el('summary', {}, `Generation ${count(p.generation)}, prompt ${count(p.number)}${p.style ? ` (${p.style})` : ''}`),
    el('pre', {}, p.text),
  );

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

function baseline() {
  const b = SUMMARY.baseline;
  if (!b) return null;
  if (!b.measured) return block('With skills and without', unmeasured(b.note), null, []);
  const about =
    `Over ${plural(b.pairs, 'task')}: ${count(b.improved)} improved, ${count(b.regressed)} regressed, ${count(b.unchanged)} unchanged, ` +
    `${count(b.noDifference || 0)} without a difference, ${count(b.undecided || 0)} undecided` +
    `${b.errors ? `; ${plural(b.errors, 'error')} without skills` : ''}.`;
  const rows = [];
  if (b.passRate) rows.push(gainRow('Pass rate', b.passRate, percent, 100, 0, ' points'));
  if (b.score) rows.push(gainRow('Score', b.score, score, 1, 2, ''));
  const most = 12;
  const changed = (b.tasks || []).filter((t) => t.passRate && (t.passRate.gain || (t.score && t.score.gain)));
  for (const t of changed.slice(0, most))
    rows.push(gainRow(taskLink(t.id), t.passRate, percent, 100, 0, ' points'));
  if (changed.length > most)
    rows.push(
      el('tr', {}, el('td', { colspan: 4, class: 'quiet' }, `and ${plural(changed.length - most, 'more task')}`)),
    );
  return block('With skills and without', about, ['', 'With', 'Without', 'Gain'], rows);
}

function gainRow(name, gain, form, scale, digits, unit) {
  const kind = !gain.interval ? '' : gain.interval.low > 0 ? 'v-passed' : gain.interval.high < 0 ? 'v-failed' : '';
  const interval = gain.interval ? ` ${signedBetween(gain.interval, scale, digits)}` : '';
  return row(name, form(gain.with), form(gain.without), [
    el('span', { class: kind }, signed(gain.gain * scale, digits), unit),
    el('span', { class: 'quiet' }, interval),
  ]);
}

function triggers() {
  const t = SUMMARY.triggers;
  if (!t) return null;
  const title = `Trigger tests${t.skill ? ` of ${t.skill}` : ''}`;
  if (!t.measured) return block(title, `${plural(t.prompts, 'prompt')}. ${unmeasured(t.note)}`, null, []);
  const wrong = (t.results || []).filter((p) => p.verdict !== 'passed' || p.errors || p.timeouts);
  const rows = [
    row(
      'Accuracy',
      [rateBar(t.accuracy, t.accuracyInterval, 72), ' ', percent(t.accuracy)],
      between(t.accuracyInterval),
    ),
    row('Precision', score(t.precision), ''),
    row('Recall', score(t.recall), ''),
    row('F1', score(t.f1), ''),
    ...wrong
      .slice(0, 12)
      .map((p) =>
        row(
          [mark(letterOf(p.verdict)), ' ', taskLink(p.id, clip(p.prompt, 60))],
          `used ${count(p.triggered)}/${count(p.answered)}`,
          p.shouldTrigger ? 'should' : 'should not',
        ),
      ),
  ];
  return block(
    title,
    `${plural((t.results || []).length, 'prompt')}${wrong.length ? `, ${count(wrong.length)} not all right` : ', all right'}.`,
    null,
    rows,
  );
}

function calibrations() {
  const list = SUMMARY.calibrations || [];
  if (!list.length) return null;
  return block(
    'Agreement with people',
    null,
    ['Grader', 'Trials', 'Same verdict', 'Kappa', 'Scores apart'],
    list.map((c) =>
      row(
        c.grader,
        [count(c.n), c.pending ? el('span', { class: 'quiet' }, ` +${count(c.pending)} waiting`) : ''],
        c.n ? percent(c.agreed) : DASH,
        typeof c.kappa === 'number' ? c.kappa.toFixed(2).replace('-', '−') : DASH,
        c.n ? score(c.meanAbsoluteDifference) : DASH,
      ),
    ),
  );
}

const MOST_COMPARISONS = 50;

// judged shows what judges say, in a run of the kind judge.
function judged() {
  const j = SUMMARY.judged;
  if (!j) return null;
  const grade = j.report ? `Grade ${j.report.overallGrade}, ${j.report.overallScore} of 100.` : 'No case was judged.';
  const quality = [5, 4, 3, 2, 1];
  return [
    block(
      'Judged',
      grade,
      ['Quality', ...quality.map(String), 'Not judged'],
      [row('Cases', ...quality.map((q) => count(j.quality[q - 1])), count(j.cases - j.judged))],
    ),
    ...judgedModels(j),
    ...judgedFindings(j.report),
  ];
}

function judgedModels(j) {
  const pairs = j.comparisons || [];
  if (!pairs.length && !j.comparisonsMissing) return [];
  const missing = j.comparisonsMissing ? ` ${plural(j.comparisonsMissing, 'comparison')} could not be made.` : '';
  const leftOut = j.comparisonsLeftOut ? ` ${plural(j.comparisonsLeftOut, 'comparison')} left out, because there are too many.` : '';
  const cases = pairs.flatMap((p) => p.cases || []);
  const winner = (c) => ({ model_a: c.modelA, model_b: c.modelB, tie: 'tie' })[c.winner] || 'none';
  const name = (id) => (TASK_NUMBERS.has(id) && TASKS[TASK_NUMBERS.get(id)].task) || id;
  return [
    block(
      'Models compared',
      `Each two answers, in both orders.${missing}${leftOut}`,
      ['Models', 'Won', 'Lost', 'Tied', 'Win rate'],
      pairs.map((p) =>
        row(
          `${p.modelA} against ${p.modelB}`,
          count(p.wins),
          count(p.losses),
          count(p.ties),
          typeof p.winRate === 'number'
            ? [percent(p.winRate), el('div', { class: 'quiet' }, between(p.winRateInterval))]
            : DASH,
        ),
      ),
    ),
    cases.length > 0 &&
      block(
        'Comparisons',
        cases.length > MOST_COMPARISONS ? `The first ${MOST_COMPARISONS} of ${count(cases.length)}.` : null,
        ['Case', 'Winner', 'Confidence'],
        cases
          .slice(0, MOST_COMPARISONS)
          .map((c) =>
            row(
              [
                taskLink(c.taskA, `${name(c.taskA)}, trial ${c.trialNum}`),
                el('div', { class: 'quiet' }, c.error || c.reasoning || ''),
              ],
              winner(c),
              c.winner ? percent(c.confidence) : DASH,
            ),
          ),
      ),
  ];
}

// judgedFindings shows the strengths and weaknesses that a judge found.
function judgedFindings(report) {
  if (!report) return [];
  const note = report.missing
    ? `Missing: ${report.missing}`
    : report.stale
      ? 'Verdicts changed since these were written.'
      : null;
  const list = (title, items) => (items || []).length > 0 && block(title, note, null, items.map((text) => row(text)));
  if (report.missing) return [block('Strengths and weaknesses', note, null, [])];
  return [list('Strengths', report.strengths), list('Weaknesses', report.weaknesses)];
}

// benchmark shows what was measured, by model and length of the context, and what was skipped.
function benchmark() {
  if (!RUN.benchmark) return null;
  const { contextTokens: tiers, skipped = [] } = RUN.benchmark;
  const cells = (SUMMARY.groups || []).filter((g) => g.benchmark);
  const list = SUMMARY.benchmark
    ? [{ name: RUN.config.model || RUN.config.executor, context: tiers[0], ...SUMMARY.benchmark }]
    : cells.map((g) => ({ name: g.group, context: ((g.cell || {}).params || {}).context_tokens ?? tiers[0], ...g.benchmark }));
  if (!list.length && !skipped.length) return null;
  const number = (m) => (m ? m.mean.toFixed(2) : DASH);
  const range = (m) => (m && m.meanInterval ? outward(m.meanInterval, 1, 2).join('–') : DASH);
  const made = block(
    'Speed',
    'Means over trials, with 95 % intervals. Times until the first token are in milliseconds.',
    ['Model', 'Context', 'Trials', 'First token', 'Interval', 'Tokens/s', 'Interval', 'Tokens read', 'Tokens written', 'Cost/trial'],
    list.map((b) =>
      row(
        b.name,
        count(b.context || 0),
        count(b.trials),
        number(b.firstTokenMs),
        range(b.firstTokenMs),
        number(b.tokensPerSecond),
        range(b.tokensPerSecond),
        b.inputTokens ? short(b.inputTokens.mean) : DASH,
        b.outputTokens ? short(b.outputTokens.mean) : DASH,
        b.costUsd ? money(b.costUsd.mean) : DASH,
      ),
    ),
  );
  made.classList.add('whole');
  made.append(...skipped.map((s) => el('p', { class: 'quiet' }, 'Skipped ', el('code', {}, s.cell.name), `: ${s.reason}.`)));
  return made;
}

// taskLink leads to a task of this page, if it is here.
function taskLink(id, text = id) {
  return TASK_NUMBERS.has(id) ? el('a', { href: hashOf(TASKS[TASK_NUMBERS.get(id)]) }, text) : text;
}
