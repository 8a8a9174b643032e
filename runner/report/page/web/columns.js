// The columns of the table of tasks, and their cells.

const SHRUNKEN = new Map(((SUMMARY.shrunken || {}).tasks || []).map((t) => [t.id, t.passRate]));

// COLUMNS are the columns of the table. by returns the value to sort by, a number or a
// text; it returns undefined for an unknown value, which comes last in either order.
const COLUMNS = [
  { key: 'verdict', title: 'Verdict', by: (t) => ORDER.indexOf(t.letter), cell: verdictCell },
  { key: 'task', title: 'Task', by: (t) => t.id.toLowerCase(), cell: nameCell },
  {
    key: 'was',
    title: 'Before',
    by: (t) => (t.was && t.was.verdict ? ORDER.indexOf(letterOf(t.was.verdict)) : undefined),
    cell: wasCell,
    when: () => Boolean(RUN.against),
  },
  { key: 'rate', title: 'Pass rate', by: (t) => t.rate ?? undefined, cell: rateCell, down: true },
  {
    key: 'shrunken',
    title: 'Shrunken',
    number: true,
    tip: 'The pass rate moved toward the mean of all tasks, by the part of its distance that chance explains',
    by: (t) => SHRUNKEN.get(t.id),
    cell: (t) => numberCell(SHRUNKEN.has(t.id) ? percent(SHRUNKEN.get(t.id)) : DASH, 'Shrunken'),
    down: true,
    when: () => SHRUNKEN.size > 0,
  },
  {
    key: 'trials',
    title: 'Trials',
    by: (t) => t.ended,
    cell: (t) => el('td', { class: 'trials' }, trialDots(t, openTrial)),
    down: true,
  },
  {
    key: 'score',
    title: 'Score',
    number: true,
    by: (t) => t.score ?? undefined,
    cell: (t) => numberCell(score(t.score), 'Score'),
    down: true,
  },
  ...['selection', 'params', 'overall'].map((key, i) => ({
    key: `tools-${key}`,
    title: ['Tools', 'Arguments', 'Tool score'][i],
    number: true,
    tip: ['Share of the expected tool calls that were made', 'Share of their arguments that are right', 'Mean of both'][i],
    by: (t) => (t.tools || {})[key] ?? undefined,
    cell: (t) => numberCell(score((t.tools || {})[key]), ['Tools', 'Arguments', 'Tool score'][i]),
    down: true,
    when: () => TASKS.some((t) => t.role === 'task' && t.tools && known(t.tools[key])),
  })),
  {
    key: 'time',
    title: 'Median time',
    number: true,
    tip: 'Median of its counted trials',
    by: (t) => t.medians?.ms,
    cell: (t) => numberCell(duration(t.medians?.ms), 'Median time'),
    down: true,
  },
  {
    key: 'tokens',
    title: 'Tokens',
    number: true,
    by: (t) => t.tokens ?? undefined,
    cell: (t) => numberCell(short(t.tokens), 'Tokens'),
    down: true,
    when: () => TASKS.some((t) => t.tokens),
  },
  {
    key: 'cost',
    title: 'Cost',
    number: true,
    by: (t) => t.cost ?? undefined,
    cell: (t) => numberCell(money(t.cost), 'Cost'),
    down: true,
    when: () => TASKS.some((t) => t.cost),
  },
].filter((c) => !c.when || c.when());

// numberCell returns a cell with a number; a narrow window also shows the number's name.
const numberCell = (text, name) => el('td', { class: 'n', 'data-label': name }, text);

function verdictCell(t) {
  return el(
    'td',
    { class: 'verdicts' },
    verdict(t.letter),
    t.flaky && el('span', { class: 'badge', 'data-tip': 'Some counted trials passed and some did not' }, 'flaky'),
    t.suspicious > 0 &&
      el('span', { class: 'badge', 'data-tip': 'Trials that passed with suspicious moves' }, `${count(t.suspicious)} suspicious`),
  );
}

function nameCell(t) {
  const tags = (t.tags || []).slice(0, 4);
  return el(
    'td',
    { class: 'name' },
    el(
      'button',
      {
        type: 'button',
        class: 'row',
        id: `task-${t.number}`,
        'data-task': t.number,
        'aria-expanded': String(expanded.has(t.number)),
        'aria-controls': `trials-${t.number}`,
        onclick: () => toggle(t),
      },
      svg(
        'svg',
        { class: 'chevron', viewBox: '0 0 10 10', width: 10, height: 10, 'aria-hidden': 'true' },
        svg('path', { d: 'M3.5 2L6.5 5L3.5 8' }),
      ),
      el('span', { class: 'id' }, t.trigger ? clip(t.trigger.prompt, 140) : t.id),
    ),
    t.name && t.name !== t.id && !t.trigger && el('span', { class: 'called' }, t.name),
    tags.map((tag) => el('span', { class: 'tag' }, tag)),
  );
}

function wasCell(t) {
  if (!isChanged(t)) return el('td', { class: 'quiet' }, t.was && t.was.new ? 'new' : 'same');
  const difference = known(t.was.rate) && known(t.rate) ? (t.rate - t.was.rate) * 100 : 0;
  return el(
    'td',
    { class: 'was' },
    t.was.verdict ? verdict(letterOf(t.was.verdict)) : DASH,
    Math.abs(difference) > SAME &&
      el('span', { class: `change ${difference > 0 ? 'v-passed' : 'v-failed'}` }, signed(difference, 0)),
  );
}

function rateCell(t) {
  if (t.bounds) return el('td', { class: 'quiet' }, rateText({ passRateBounds: t.bounds }));
  if (!known(t.rate)) return el('td', { class: 'quiet' }, DASH);
  return el(
    'td',
    { class: 'rates', 'data-tip': t.interval ? `95 % interval ${between(t.interval)}` : null },
    rateBar(t.rate, t.interval),
    el('span', { class: 'number' }, percent(t.rate, t.passThreshold ?? 1)),
    t.interval && el('span', { class: 'interval' }, between(t.interval)),
  );
}
