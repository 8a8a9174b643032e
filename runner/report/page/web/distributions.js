// The distribution of scores, times, tokens and costs: a histogram of each over the
// trials of the listed tasks, and for a chosen one its trials by task.

const MOST_ROWS = 24;
let measured = null; // the measure that is shown by task

// showDistributions draws the trials of the listed tasks.
function showDistributions(tasks) {
  const list = tasks.flatMap(trialsOf).filter((at) => counted(TRIALS.verdict[at]));
  const keys = Object.keys(MEASURES).filter((key) =>
    list.some((at) => MEASURES[key].of[at] > 0 || (key === 'score' && MEASURES[key].of[at] === 0)),
  );
  byId('distributions').hidden = keys.length === 0;
  if (!keys.includes(measured)) measured = null;
  put(
    byId('distributions-about'),
    `of ${plural(list.length, 'counted trial')} in ${plural(tasks.length, 'task')}: `,
    el('span', { class: 'swatch passed' }),
    'passed ',
    el('span', { class: 'swatch others' }),
    'not passed',
  );
  put(
    byId('histograms'),
    keys.map((key) =>
      el(
        'figure',
        { class: key === measured ? 'chosen' : null },
        el(
          'button',
          {
            type: 'button',
            'aria-pressed': String(key === measured),
            onclick: () => choose(key, tasks),
            'data-tip': 'Show by task',
          },
          MEASURES[key].title,
          MEASURES[key].unit && el('span', { class: 'quiet' }, ` ${MEASURES[key].unit}`),
        ),
        histogram(key, list),
      ),
    ),
  );
  showStrip(tasks);
}

function choose(key, tasks) {
  measured = measured === key ? null : key;
  showDistributions(tasks);
  const chosen = byId('histograms').querySelector('[aria-pressed="true"]');
  if (chosen) chosen.focus();
}

function showStrip(tasks) {
  const place = byId('strip');
  place.hidden = measured === null;
  if (measured === null) return put(place);
  const { of: values } = MEASURES[measured];
  const all = tasks.filter((task) => trialsOf(task).some((at) => values[at] >= 0));
  const some = all.slice(0, MOST_ROWS);
  return put(
    place,
    strip(measured, some, Math.max(320, place.clientWidth || byId('tasks').clientWidth), openTrial),
    el(
      'p',
      { class: 'quiet' },
      all.length > some.length
        ? `The first ${count(some.length)} of ${count(all.length)} tasks, as the table lists them. `
        : '',
      'Each sign is a trial. The line is the median of the counted ones.',
    ),
  );
}
