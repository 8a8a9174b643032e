// Measures of the whole run: the matrix of a run over several models or parameters,
// metrics, groups, the comparison with a baseline, trigger tests, routing, and the
// agreement of judges with people.

function showMeasures() {
  const blocks = [compared(), judged(), benchmark(), matrix(), metrics(), groups(), baseline(), triggers(), shouldTrigger(), routing(), calibrations(), corrected()].flat().filter(Boolean);
  put(byId('measures'), blocks);
  byId('measures').hidden = blocks.length === 0;
}

// compared shows what waza compare prints about this run and the earlier one, in its words.
function compared() {
  const a = RUN.against || {};
  if (a.uncompared) return block('Comparison', `Not tested: ${a.uncompared}.`, null, []);
  return (a.sections || []).map((s, i) => {
    const [head, ...rows] = s.rows || [[]];
    const made = block(s.title || (i === 0 ? 'Comparison' : ''), null, head, rows.map((cells) => row(...cells)));
    made.append(...(s.lines || []).map((text) => el('p', {}, text)));
    made.classList.add('whole', 'compared');
    return made;
  });
}

// block returns a small table with a title and an optional sentence above it.
function block(title, about, head, rows) {
  return el(
    'div',
    { class: 'block' },
    title && el('h2', {}, title),
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

// matrix returns the tasks of a run by models and parameters.
function matrix() {
  const own = TASKS.filter((t) => t.cell && t.role === 'task');
  const cells = [...new Set(own.map((t) => t.cell.name))];
  if (cells.length < 2 || cells.length > MOST_CELLS) return null; // groups show them, too
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

// tuned names the best cell of a tuning, its score, the cells that may be as good, and the tasks
// that comparisons of cells leave out; null if there is nothing to say.
function tuned() {
  const t = SUMMARY.tune;
  if (!(SUMMARY.groups || []).some((g) => g.cell)) return null;
  const effect = t
    ? 'Ranked by the tasks with a score in every cell:'
    : 'Cells can be compared only by the tasks with a score in every cell:';
  return [
    t && el('p', { class: 'quiet' }, [t.best && `Best cell: ${t.best}.`, bestScore(t.score), rivals(t)].filter(Boolean).join(' ')),
    ...commonTasks(effect),
    ...((t && t.prompts) || []).map(proposed),
  ].filter(Boolean);
}

// bestScore is a sentence about the score of the best cell.
function bestScore(s) {
  if (!s) return '';
  const text = `Score ${score(s.value)}, 95 % interval ${scores(s.interval)}, `;
  if (s.basis !== 'shrunk') return `${text}measured: there was only one cell to choose from.`;
  return `${text}shrunk because it is the best of ${count(s.cells)} cells; its trials score ${score(s.observed)}, and no fresh trials confirm it.`;
}

const MOST_LEFT_OUT = 8;

// commonTasks are paragraphs about the tasks that have no score in every cell.
function commonTasks(effect) {
  const c = SUMMARY.common;
  if (!c) return [];
  const several = (texts, total, most, separator) => {
    const shown = texts.slice(0, most);
    return shown.join(separator) + (total > shown.length ? ` and ${count(total - shown.length)} more` : '');
  };
  const out = c.leftOut || [];
  const names = out.map((t) => {
    const where = t.cellCount ? ` in ${several(t.cells, t.cellCount, t.cells.length, ', ')}` : '';
    return `${t.task} (${t.why}${where})`;
  });
  const without = c.cellsWithoutScore || [];
  return [
    out.length &&
      `${effect} ${count(c.tasks)} of ${plural(c.tasks + out.length, 'task')}. Left out: ${several(names, out.length, MOST_LEFT_OUT, '; ')}.`,
    without.length &&
      `Cells without any score, which are not compared: ${several(without, without.length, MOST_LEFT_OUT, '; ')}.`,
  ]
    .filter(Boolean)
    .map((text) => el('p', { class: 'quiet' }, text));
}

function rivals(t) {
  if (t.note) return sentence(t.note);
  if (!t.rivals) return '';
  const shown = t.rivals.slice(0, MOST_CELLS);
  const more = t.rivals.length > shown.length ? ` and ${count(t.rivals.length - shown.length)} more` : '';
  return `Possibly as good (not separated by these trials): ${shown.join('; ')}${more}.`;
}

// proposed shows a system prompt that a model proposed.
const proposed = (p) =>
  el(
    'details',
    {},
    el('summary', {}, `Generation ${count(p.generation)}, prompt ${count(p.number)}${p.style ? ` (${p.style})` : ''}`),
    el('pre', {}, p.text),
  );

const sentence = (text) => `${capital(text)}.`;

function baseline() {
  const b = SUMMARY.baseline;
  if (!b) return null;
  const title = `With skills and ${b.arm || 'without'}`; // the run records the name of other arms
  if (!b.measured) return block(title, unmeasured(b.note), null, []);
  const about =
    `Over ${plural(b.pairs, 'task')}, each by itself: ${count(b.improved)} improved, ${count(b.regressed)} regressed, ${count(b.unchanged)} unchanged, ` +
    `${count(b.noDifference || 0)} without a difference, ${count(b.undecided || 0)} undecided` +
    `${b.errors ? `; ${plural(b.errors, 'error')} ${b.arm || 'without skills'}` : ''}.`;
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
  const sentences = [about, ...(RUN.baseline || []).map(sentence)].map((text) => el('p', { class: 'quiet' }, text));
  return block(title, sentences, ['', 'With', capital(b.arm || 'without'), 'Gain'], rows);
}

function gainRow(name, gain, form, scale, digits, unit) {
  const kind = !gain.interval ? '' : gain.interval.low > 0 ? 'v-passed' : gain.interval.high < 0 ? 'v-failed' : '';
  const interval = gain.interval ? ` ${signedBetween(gain.interval, scale, digits)}` : '';
  return row(name, form(gain.with), form(gain.without), [
    el('span', { class: kind }, signed(gain.gain * scale, digits), unit),
    el('span', { class: 'quiet' }, interval),
  ]);
}

function shouldTrigger() {
  const u = SUMMARY.shouldTrigger;
  return u ? block('Expected should_trigger', `${plural(u.tasks, 'task')}. ${unmeasured(u.note)}`, null, []) : null;
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
    `${plural((t.results || []).length, 'prompt')}${wrong.length ? `, ${count(wrong.length)} not all right` : ', all right'}.${endedEarly(t)}`,
    null,
    rows,
  );
}

// endedEarly returns a sentence about trials whose tokens and times are lower than those of whole trials.
const endedEarly = (t) =>
  t.endedEarly
    ? ` ${count(t.endedEarly)} of ${plural(t.trials.total, 'trial')} ended early, when the answer was decided; tokens and times are those until then.`
    : '';

const MOST_MISROUTES = 50;
const MOST_TOOK = 10;

// routing shows how well messages reached their clients: by client, by cell, expected
// clients against clients that took the message, and each misroute.
function routing() {
  const r = SUMMARY.routing;
  if (!r) return null;
  const also = [
    [r.rerouted, 'rerouted'],
    [r.errors, 'in error'],
    [r.timeouts, 'timed out'],
  ]
    .filter(([n]) => n)
    .map(([n, what]) => `; ${plural(n, 'trial')} ${what}`)
    .join('');
  const about =
    typeof r.accuracy === 'number'
      ? `Over ${plural(r.tasks, 'task')}: accuracy ${percent(r.accuracy)}, ${between(r.accuracyInterval)}${also}.`
      : `Not measured: no trial was answered${also}.`;
  const matches = (name, m) =>
    row(
      name,
      weight(m.truePositives + m.falseNegatives),
      weight(m.truePositives + m.falsePositives),
      weight(m.truePositives),
      score(m.precision),
      score(m.recall),
      score(m.f1),
    );
  const clients = r.clients || [];
  const made = block(
    'Routing',
    about,
    ['Client', 'Expected', 'Took', 'Right', 'Precision', 'Recall', 'F1'],
    clients.length ? [...clients.map((c) => matches(c.client, c)), matches('all', r)] : [],
  );
  made.classList.add('whole');
  return [made, routingCells(), confusion(r), misroutes(r)];
}

const weight = (x) => (Math.abs(x - Math.round(x)) < 1e-9 ? count(Math.round(x)) : score(x));
const clientsText = (names) => (names.length ? names.join(' + ') : 'nobody');

function routingCells() {
  const cells = (SUMMARY.groups || []).filter((g) => g.routing);
  if (!cells.length) return null;
  const rows = cells.map(({ group, routing: r }) =>
    row(
      group,
      typeof r.accuracy === 'number' ? percent(r.accuracy) : DASH,
      r.accuracyInterval ? between(r.accuracyInterval) : DASH,
      score(r.precision),
      score(r.recall),
      score(r.f1),
    ),
  );
  return block('Routing by cell', null, ['Cell', 'Accuracy', '95 % interval', 'Precision', 'Recall', 'F1'], rows);
}

function confusion(r) {
  const cells = r.confusion || [];
  const rank = (s) => (s === 'nobody' ? Infinity : s.split(' + ').length);
  const labels = (key) =>
    [...new Set(cells.map((c) => clientsText(c[key])))].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  const took = labels('took');
  if (!cells.length || took.length > MOST_TOOK || r.confusionDropped) return null;
  const weights = new Map(cells.map((c) => [`${clientsText(c.expected)}/${clientsText(c.took)}`, c.weight]));
  const rows = labels('expected').map((e) =>
    row(
      e,
      ...took.map((t) => {
        const w = weights.get(`${e}/${t}`);
        return w ? el('span', { class: e === t ? 'v-passed' : 'v-failed' }, weight(w)) : '·';
      }),
    ),
  );
  const made = block('Confusion matrix', 'Expected clients against those that took the message.', ['Expected', ...took], rows);
  made.classList.toggle('whole', took.length > 3);
  return made;
}

function misroutes(r) {
  const list = r.misroutes || [];
  if (!list.length) return null;
  const all = list.length + (r.misroutesDropped || 0);
  const shown = list.slice(0, MOST_MISROUTES);
  const made = block(
    'Misroutes',
    all > shown.length ? `The first ${count(shown.length)} of ${count(all)}.` : null,
    ['Task', 'Trial', 'Expected', 'Taken by', 'Rejected by', 'Reason'],
    shown.map((m) =>
      row(
        taskLink(m.taskId),
        count(m.trialNum),
        clientsText(m.expected),
        clientsText(m.took),
        (m.rejected || []).join(', ') || DASH,
        clip(m.reason || DASH, 160),
      ),
    ),
  );
  made.classList.add('whole');
  return made;
}

function calibrations() {
  const list = SUMMARY.calibrations || [];
  if (!list.length) return null;
  return block(
    'Agreement with people',
    null,
    ['Grader', 'Trials', 'Same verdict', 'Kappa', 'Score difference', 'Bias'],
    list.map((c) =>
      row(
        c.grader,
        [count(c.n), c.pending ? el('span', { class: 'quiet' }, ` +${count(c.pending)} waiting`) : ''],
        c.n ? percent(c.agreed) : DASH,
        typeof c.kappa === 'number' ? c.kappa.toFixed(2).replace('-', '−') : DASH,
        c.n ? score(c.meanAbsoluteDifference) : DASH,
        c.n ? (c.meanDifference > 0 ? '+' : '') + c.meanDifference.toFixed(2).replace('-', '−') : DASH,
      ),
    ),
  );
}

// corrected shows the pass rates of judges that people corrected.
function corrected() {
  const list = (SUMMARY.calibrations || []).filter((c) => c.corrected);
  if (!list.length) return null;
  const shown = (value, form, i) => (typeof value === 'number' ? [form(value), i ? ` (${between(i)})` : ''] : DASH);
  return block(
    'Pass rate corrected by people',
    null,
    ['Grader', 'Labels', 'Judged', 'Corrected', 'Corrected score'],
    list.map(({ grader, corrected: c }) =>
      row(
        grader,
        [`${count(c.labels)} of ${count(c.trials)}`, c.drawn > c.labels ? el('span', { class: 'quiet' }, ` +${count(c.drawn - c.labels)} waiting`) : ''],
        shown(c.judged, percent, c.judgedInterval),
        shown(c.passRate, percent, c.passRateInterval),
        typeof c.score === 'number' ? score(c.score) : DASH,
      ),
    ),
  );
}

const MOST_COMPARISONS = 50;

// judged shows the judges' results in a run of the kind judge.
function judged() {
  const j = SUMMARY.judged;
  if (!j) return null;
  const graded = j.report && typeof j.report.overallScore === 'number';
  const grade = !j.report
    ? 'No cases were judged.'
    : graded
      ? `Grade ${j.report.overallGrade}, ${j.report.overallScore} of 100.`
      : 'No grade, because no task has a score in every cell.';
  const quality = [5, 4, 3, 2, 1];
  return [
    block(
      'Judged',
      [el('p', { class: 'quiet' }, grade), ...commonTasks('The grade is that of')],
      ['Quality', ...quality.map(String), 'Not judged'],
      [row('Cases', ...quality.map((q) => count(j.quality[q - 1])), count(j.cases - j.judged))],
    ),
    ...judgedModels(j),
    judgedRanking(j.ranking || []),
    ...judgedFindings(j.report),
  ];
}

// judgedRanking shows the strengths of models by all comparisons together.
function judgedRanking(list) {
  if (!list.length) return null;
  const groups = Math.max(...list.map((m) => m.group));
  return block(
    'Ranking',
    groups > 1 ? `The models form ${count(groups)} groups without a comparison between them: their order is unknown.` : null,
    ['Model', ...(groups > 1 ? ['Group'] : []), 'Rank', 'Beats the average'],
    list.map((m) =>
      row(m.model, ...(groups > 1 ? [count(m.group)] : []), count(m.rank), [percent(m.strength), ` (${between(m.strengthInterval)})`]),
    ),
  );
}

function judgedModels(j) {
  const pairs = j.comparisons || [];
  if (!pairs.length && !j.comparisonsMissing) return [];
  const missing = j.comparisonsMissing ? ` ${plural(j.comparisonsMissing, 'comparison')} could not be made.` : '';
  const leftOut = j.comparisonsLeftOut ? ` ${plural(j.comparisonsLeftOut, 'comparison')} omitted because there are too many.` : '';
  const cases = pairs.flatMap((p) => p.cases || []);
  const winner = (c) => ({ model_a: c.modelA, model_b: c.modelB, tie: 'tie' })[c.winner] || 'none';
  const name = (id) => (TASK_NUMBERS.has(id) && TASKS[TASK_NUMBERS.get(id)].task) || id;
  return [
    block(
      'Models compared',
      `Every two answers, in both orders.${missing}${leftOut}`,
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

// benchmark shows the measurements by model and length of the context, and skipped cells.
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
  const spread = (m) => (m ? [m.median, m.p90, m.p95].map((ms) => ms.toFixed(2)) : [DASH, DASH, DASH]);
  const times = block(
    'Speed: time of answers',
    'Milliseconds from the prompt to the first token and to the end of the answer, in the 50th, 90th and 95th percentile of trials.',
    ['Model', 'Context', 'Trials', ...['First token', 'Total time'].flatMap((name) => ['p50', 'p90', 'p95'].map((p) => `${name} ${p}`))],
    list.map((b) => row(b.name, count(b.context || 0), count(b.trials), ...spread(b.firstTokenMs), ...spread(b.totalMs))),
  );
  const made = block(
    'Speed: means over trials',
    'With 95 % intervals. The time to the first token is in milliseconds.',
    ['Model', 'Context', 'Mean first token', 'Interval', 'Mean tokens/s', 'Interval', 'Mean tokens read', 'Mean tokens written', 'Mean cost'],
    list.map((b) =>
      row(
        b.name,
        count(b.context || 0),
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
  times.classList.add('whole');
  made.classList.add('whole');
  made.append(...list.filter((b) => b.note).map((b) => el('p', { class: 'quiet' }, el('code', {}, b.name), ` at ${count(b.context || 0)}: ${b.note}.`)));
  made.append(...skipped.map((s) => el('p', { class: 'quiet' }, 'Skipped ', el('code', {}, s.cell.name), `: ${s.reason}.`)));
  return [times, made];
}

// taskLink returns a link to a task of this page, or its text if the page does not have it.
function taskLink(id, text = id) {
  return TASK_NUMBERS.has(id) ? el('a', { href: hashOf(TASKS[TASK_NUMBERS.get(id)]) }, text) : text;
}
