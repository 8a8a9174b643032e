// The content of an open task: its description, why its trials did not pass, and the
// trials, a row for each.

const MORE = 50; // trials listed at a time

const chosen = new Map(); // by index of a task: the letter of the verdict to list

function taskDetails(task) {
  const facts = [
    ['File', task.file && [task.file, HOST.openTask && place('Go to the task', () => HOST.openTask(task.id))]],
    ['Tags', (task.tags || []).join(', ')],
    ['Groups', (task.groups || []).join(', ')],
    ...cellOf(task),
    ['Must pass', task.passThreshold !== undefined && task.passThreshold < 1 && percent(task.passThreshold)],
    [
      'Score',
      task.scoreInterval &&
        task.ended > 1 &&
        `${score(task.score)} (${scores(task.scoreInterval)})`,
    ],
    ...passK(task),
  ].filter(([, value]) => value);
  return el(
    'div',
    { class: 'details' },
    task.description && el('p', { class: 'description' }, task.description),
    task.trigger &&
      el(
        'p',
        { class: 'description' },
        el('q', {}, task.trigger.prompt),
        ` ${task.trigger.shouldTrigger ? 'should' : 'should not'} make the agent use the skill${task.trigger.reason ? `: ${task.trigger.reason}` : '.'}`,
      ),
    facts.length > 0 &&
      el(
        'p',
        { class: 'facts' },
        facts.map(([name, value]) => el('span', { class: 'fact' }, el('span', { class: 'name' }, name), ' ', value)),
      ),
    task.error && el('p', { class: 'v-error' }, task.error),
    decided(task),
    reasons(task),
    trialTable(task),
  );
}

// passK shows how often one of k trials would pass, or all of them.
function passK(task) {
  const at = (task.passK || []).filter((c) => c.k > 1).pop();
  return at
    ? [
        [`pass@${at.k}`, percent(at.passAtK)],
        [`pass^${at.k}`, percent(at.passHatK)],
      ]
    : [];
}

// decided shows when a task was stopped early.
function decided(task) {
  if (!task.decided) return null;
  return el('p', { class: 'quiet' }, sentence(task.decided));
}

// cellOf shows the model of a task in a run over several models, and the cell in one over parameters.
function cellOf(task) {
  const cell = task.cell || {};
  const params = Object.entries(cell.params || {});
  return [['Model', task.model || cell.model], ...params.map(([name, value]) => [name, String(value)])];
}

function reasons(task) {
  if (!(task.reasons || []).length) return null;
  return el(
    'ul',
    { class: 'reasons' },
    task.reasons.map((r) =>
      el(
        'li',
        {},
        mark(letterOf(r.verdict)),
        ' ',
        r.grader && el('strong', {}, r.grader),
        el('span', { class: 'quiet' }, ` in ${count(r.trials)} of ${plural(task.counts.total, 'trial')} `),
        el('span', { class: 'message' }, r.message || 'no reason given'),
      ),
    ),
  );
}

function trialTable(task) {
  if (task.ended === 0) return el('p', { class: 'quiet' }, 'No trial has ended yet.');
  const place = el('div', {});
  const fillIn = (most) => {
    const letters = ORDER.filter((l) => trialsOf(task).some((at) => TRIALS.verdict[at] === l));
    const only = letters.length > 1 ? chosen.get(task.number) : undefined;
    const all = trialsOf(task).filter((at) => !only || TRIALS.verdict[at] === only);
    put(
      place,
      letters.length > 1 &&
        el(
          'div',
          { class: 'choices', role: 'group', 'aria-label': 'Trials listed' },
          [undefined, ...letters].map((l) =>
            choice(
              l ? VERDICTS[l].word : 'All trials',
              l ? trialsOf(task).filter((at) => TRIALS.verdict[at] === l).length : task.ended,
              only === l,
              () => {
                chosen.set(task.number, l);
                fillIn(MORE);
              },
            ),
          ),
        ),
      el(
        'table',
        { class: 'trials' },
        trialHead(),
        el(
          'tbody',
          {},
          all.slice(0, most).map((at) => trialRow(task, at)),
        ),
      ),
      all.length > most &&
        el(
          'button',
          { type: 'button', class: 'more', onclick: () => fillIn(most + 10 * MORE) },
          `Show ${count(Math.min(10 * MORE, all.length - most))} more of ${count(all.length)}`,
        ),
    );
  };
  fillIn(MORE);
  return place;
}

const shown = (key) => MEASURES[key].of.some((x) => x > 0);
const TRIAL_NUMBERS = [
  ['Score', (at) => score(TRIALS.score[at])],
  ['Time', (at) => duration(TRIALS.ms[at])],
  ...(shown('tokens') ? [['Tokens', (at) => short(TRIALS.tokens[at])]] : []),
  ...(shown('cost') ? [['Cost', (at) => money(TRIALS.cost[at])]] : []),
];

const trialHead = () =>
  el(
    'thead',
    {},
    el(
      'tr',
      {},
      el('th', { scope: 'col' }, 'Trial'),
      el('th', { scope: 'col' }, 'Verdict'),
      TRIAL_NUMBERS.map(([name]) => el('th', { scope: 'col', class: 'n' }, name)),
      el('th', { scope: 'col' }, 'Why'),
    ),
  );

function trialRow(task, at) {
  const letter = TRIALS.verdict[at];
  const was = TRIALS.was ? TRIALS.was[at] : ' ';
  const why = TRIALS.why[at] >= 0 ? TRIALS.whys[TRIALS.why[at]] : '';
  const tries = TRIALS.tries[at] > 1 ? plural(TRIALS.tries[at], 'attempt') : '';
  return el(
    'tr',
    {
      class: 'trial',
      onclick: (event) => {
        if (!event.target.closest('button')) openTrial(at);
      },
    },
    el(
      'td',
      {},
      el(
        'button',
        {
          type: 'button',
          class: 'row',
          'data-trial-row': at,
          'aria-haspopup': 'dialog',
          'aria-label': `Trial ${TRIALS.num[at]} of ${task.id}, ${VERDICTS[letter].word.toLowerCase()}`,
          onclick: () => openTrial(at),
        },
        `${TRIALS.num[at]}`,
      ),
    ),
    el(
      'td',
      {},
      verdict(letter),
      was !== ' ' && was !== letter && el('span', { class: 'badge' }, `was ${VERDICTS[was].word.toLowerCase()}`),
      CACHED.has(at) && el('span', { class: 'badge', 'data-tip': 'Reused from an earlier run' }, 'cached'),
    ),
    TRIAL_NUMBERS.map(([, form]) => numberCell(form(at))),
    el('td', { class: 'why' }, [why, tries].filter(Boolean).join(' · ')),
  );
}
