// Drawings: axes, histograms and strips of dots. The label of a drawing describes it, and
// its numbers are also in a table.

// ticks returns round numbers from 0 to at least most.
function ticks(most, about = 3) {
  if (!(most > 0)) return [0, 1];
  const rough = most / about;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * unit).find((s) => s >= rough * 0.999);
  const list = [];
  for (let i = 0; ; i++) {
    list.push(Number((i * step).toPrecision(12)));
    if (i * step >= most * 0.9999) return list;
  }
}

// timeTicks are ticks in milliseconds that match units of a clock.
function timeTicks(most) {
  const steps = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1.5e4, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5,
  ];
  const step = steps.find((s) => most / s <= 5);
  if (!step) return ticks(most);
  const list = [0];
  while (list[list.length - 1] < most * 0.9999) list.push(list[list.length - 1] + step);
  return list.length > 1 ? list : [0, 1];
}

// axisOf returns the ticks of a measure for values up to most.
function axisOf(key, most) {
  if (key === 'score') return [0, 0.25, 0.5, 0.75, 1];
  return key === 'ms' ? timeTicks(most) : ticks(most);
}

// onAxis formats a value below an axis.
function onAxis(key, value) {
  if (key === 'score') return String(value);
  return key === 'cost' ? `$${Number(value.toPrecision(3))}` : MEASURES[key].form(value);
}

// maximum returns the largest of the known values, or 0 if there are no values. (Math.max
// does not accept long lists.)
function maximum(values, list) {
  let most = 0;
  for (const at of list) if (values[at] > most) most = values[at];
  return most;
}

const label = (x, y, text, anchor = 'middle') => svg('text', { x, y, 'text-anchor': anchor }, text);

// anchorOf keeps the first and the last label of an axis inside of the drawing.
const anchorOf = (i, n) => (i === 0 ? 'start' : i === n - 1 ? 'end' : 'middle');

// histogram draws the distribution of the trials' values: passed trials at the bottom,
// and the others, darker, on top.
function histogram(key, list, width = 260, height = 112) {
  const { of: values, form, title } = MEASURES[key];
  const axis = axisOf(key, maximum(values, list));
  const end = axis[axis.length - 1];
  const bins = Array.from({ length: 20 }, () => ({ passed: 0, others: 0 }));
  let n = 0;
  for (const at of list) {
    if (values[at] < 0) continue;
    const bin = bins[Math.min(bins.length - 1, Math.floor((values[at] / end) * bins.length))];
    if (TRIALS.verdict[at] === 'p') bin.passed += 1;
    else bin.others += 1;
    n += 1;
  }
  const most = Math.max(...bins.map((b) => b.passed + b.others), 1);
  const floor = height - 18;
  const top = 12;
  const step = width / bins.length;
  const tall = (count_) => (count_ === 0 ? 0 : Math.max(1.5, (count_ / most) * (floor - top)));
  const drawing = svg('svg', {
    class: 'histogram',
    viewBox: `0 0 ${width} ${height}`,
    role: 'img',
    'aria-label': `${title} of ${plural(n, 'trial')}, up to ${form(end)}`,
  });
  drawing.append(
    svg('line', { class: 'grid', x1: 0, x2: width, y1: top, y2: top }),
    label(width, top - 3, count(most), 'end'),
    svg('line', { class: 'axis', x1: 0, x2: width, y1: floor + 0.5, y2: floor + 0.5 }),
  );
  bins.forEach((bin, i) => {
    const passed = tall(bin.passed);
    const others = tall(bin.others);
    if (!bin.passed && !bin.others) return;
    const at = { x: (i * step + 0.75).toFixed(2), width: (step - 1.5).toFixed(2) };
    drawing.append(
      svg(
        'g',
        {
          'data-tip': `${form((i * end) / bins.length)} – ${form(((i + 1) * end) / bins.length)}\n${count(bin.passed)} passed, ${count(bin.others)} not`,
        },
        svg('rect', { class: 'reach', ...at, y: top, height: floor - top }),
        passed ? svg('rect', { class: 'passed', ...at, y: floor - passed, height: passed }) : null,
        others
          ? svg('rect', { class: 'others', ...at, y: floor - passed - others - (passed ? 1 : 0), height: others })
          : null,
      ),
    );
  });
  axis.forEach((t, i) =>
    drawing.append(label((t / end) * width, height - 4, onAxis(key, t), anchorOf(i, axis.length))),
  );
  return drawing;
}

const ROW = 22;
const MOST_DOTS = 160; // in a row of a strip; more dots become a density

// strip draws the trials of tasks on one axis, with a row for each task.
function strip(key, tasks, width, open) {
  const { of: values, form, title } = MEASURES[key];
  const all = tasks.flatMap(trialsOf).filter((at) => values[at] >= 0);
  const axis = axisOf(key, maximum(values, all));
  const end = axis[axis.length - 1];
  const left = Math.min(240, Math.round(width * 0.3));
  const inner = width - left - 12;
  const height = tasks.length * ROW + 24;
  const x = (value) => left + (value / end) * inner;
  const drawing = svg('svg', {
    class: 'strip',
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: 'img',
    'aria-label': `${title} of the trials of ${plural(tasks.length, 'task')}`,
  });
  axis.forEach((t, i) =>
    drawing.append(
      svg('line', { class: 'grid', x1: x(t), x2: x(t), y1: 2, y2: height - 20 }),
      label(x(t), height - 5, onAxis(key, t), i === axis.length - 1 ? 'end' : 'middle'),
    ),
  );
  tasks.forEach((task, row) => {
    const y = row * ROW + ROW / 2 + 2;
    const name = label(left - 12, y + 4, clip(task.id, Math.floor(left / 7)), 'end');
    name.dataset.tip = task.id;
    const own = trialsOf(task).filter((at) => values[at] >= 0);
    drawing.append(name, ...(own.length > MOST_DOTS ? density(key, own, x, y, end) : dots(key, own, x, y)));
    const middle = (task.medians || {})[key];
    if (own.length > 1 && known(middle)) drawing.append(median(x(middle), y));
  });
  drawing.addEventListener('click', (event) => {
    const at = event.target.dataset && event.target.dataset.trial;
    if (at) open(Number(at));
  });
  return drawing;
}

function dots(key, list, x, y) {
  const { of: values, form } = MEASURES[key];
  return list.map((at, i) => {
    const letter = TRIALS.verdict[at];
    const v = VERDICTS[letter];
    const lift = ((i * 7) % 5) - 2; // makes equal values visible as several dots
    return svg(
      'g',
      {
        class: `dot v-${v.name}`,
        transform: `translate(${(x(values[at]) - 4).toFixed(1)} ${y - 4 + lift * 1.6}) scale(.8)`,
      },
      svg('path', { class: v.line ? 'line' : 'solid', d: v.shape }),
      svg('rect', {
        class: 'reach',
        width: 10,
        height: 10,
        'data-trial': at,
        'data-tip': `${taskOf(at).id}, trial ${TRIALS.num[at]}\n${form(values[at])}, ${v.word.toLowerCase()}`,
      }),
    );
  });
}

function density(key, list, x, y, end) {
  const { of: values, form } = MEASURES[key];
  const bins = new Array(60).fill(0);
  for (const at of list) bins[Math.min(59, Math.floor((values[at] / end) * 60))] += 1;
  const most = Math.max(...bins);
  const wide = x(end / 60) - x(0);
  return bins.flatMap((n, i) =>
    n === 0
      ? []
      : [
          svg('rect', {
            class: 'dense',
            x: x((i * end) / 60).toFixed(1),
            width: Math.max(1, wide - 0.5).toFixed(1),
            y: y - 7,
            height: 14,
            'fill-opacity': (0.12 + 0.88 * (n / most)).toFixed(2),
            'data-tip': `${form((i * end) / 60)} – ${form(((i + 1) * end) / 60)}\n${plural(n, 'trial')}`,
          }),
        ],
  );
}

const median = (x, y) => svg('line', { class: 'median', x1: x, x2: x, y1: y - 8, y2: y + 8 });
