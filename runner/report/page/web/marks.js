// The small drawings of tables: bars of rates, and the signs of trials.

// rateBar draws a pass rate, from 0 to 1, with its interval.
function rateBar(rate, interval, width = 96) {
  if (!known(rate)) return null;
  const inner = width - 4;
  const x = (v) => (2 + v * inner).toFixed(1);
  return svg(
    'svg',
    { class: 'rate', width, height: 12, viewBox: `0 0 ${width} 12`, 'aria-hidden': 'true' },
    svg('line', { class: 'track', x1: 2, x2: width - 2, y1: 6, y2: 6 }),
    interval &&
      svg('rect', {
        class: 'band',
        x: x(interval.low),
        width: Math.max(1, (interval.high - interval.low) * inner).toFixed(1),
        y: 3,
        height: 6,
        rx: 3,
      }),
    svg('line', { class: 'value', x1: x(rate), x2: x(rate), y1: 1, y2: 11 }),
  );
}

const DOTS = 48; // most trials that are drawn one by one
const PITCH = 11;
const PER_LINE = 16;

// trialDots draws the trials of a task by number, with a sign for each. For many trials
// it draws the shares of the verdicts.
function trialDots(task, open) {
  if (task.ended === 0) return el('span', { class: 'quiet' }, DASH);
  const said = saying(task.counts);
  if (task.ended > DOTS) return shares(task.counts, 150, `${plural(task.ended, 'trial')}: ${said}`);
  const lines = Math.ceil(task.ended / PER_LINE);
  const width = Math.min(task.ended, PER_LINE) * PITCH;
  const drawing = svg('svg', {
    class: 'dots',
    width,
    height: lines * PITCH,
    viewBox: `0 0 ${width} ${lines * PITCH}`,
    role: 'img',
    'aria-label': said,
  });
  trialsOf(task).forEach((at, i) => {
    const letter = TRIALS.verdict[at];
    const v = VERDICTS[letter];
    const was = TRIALS.was && TRIALS.was[at] !== ' ' && TRIALS.was[at] !== letter ? TRIALS.was[at] : '';
    drawing.append(
      svg(
        'g',
        {
          class: `dot v-${v.name}`,
          transform: `translate(${(i % PER_LINE) * PITCH + 0.5} ${Math.floor(i / PER_LINE) * PITCH + 0.5})`,
        },
        was ? svg('rect', { class: 'changed', x: -0.5, y: -0.5, width: 11, height: 11, rx: 2 }) : null,
        svg('path', { class: v.line ? 'line' : 'solid', d: v.shape }),
        svg('rect', {
          class: 'reach',
          width: 10,
          height: 10,
          'data-trial': at,
          'data-tip': `Trial ${TRIALS.num[at]}: ${v.word.toLowerCase()}${was ? `, was ${VERDICTS[was].word.toLowerCase()}` : ''}`,
        }),
      ),
    );
  });
  drawing.addEventListener('click', (event) => {
    const at = event.target.dataset && event.target.dataset.trial;
    if (!at) return;
    event.stopPropagation();
    open(Number(at));
  });
  return drawing;
}

// shares draws counts as parts of a bar.
function shares(counts, width, title) {
  const list = parts(counts);
  const total = list.reduce((sum, [, n]) => sum + n, 0) || 1;
  const drawing = svg('svg', {
    class: 'shares',
    viewBox: `0 0 ${width} 10`,
    width,
    height: 10,
    preserveAspectRatio: 'none',
    role: 'img',
    'aria-label': title,
    'data-tip': title,
  });
  let x = 0;
  for (const [letter, n] of list) {
    const part = (n / total) * width;
    drawing.append(
      svg('rect', {
        class: `solid v-${VERDICTS[letter].name}`,
        x: x.toFixed(2),
        y: 1,
        height: 8,
        width: Math.max(0.75, part - (list.length > 1 ? 1 : 0)).toFixed(2),
      }),
    );
    x += part;
  }
  return drawing;
}
