// Numbers for people. A dash means unknown.

const DASH = '–';

const known = (x) => x !== null && x !== undefined && x >= 0 && Number.isFinite(x);

const integers = new Intl.NumberFormat('en');

const capital = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;

const count = (n) => integers.format(n);

// plural returns "1 task" or "2 tasks".
const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many || `${one}s`}`;

// The rules of package figure: rounding never makes a number equal to a limit that it
// differs from, and rounds bounds of intervals outward.

const SAME = 1e-9;
const MOST_DIGITS = 9;

const sideOf = (x, y) => (x < y - SAME ? -1 : x > y + SAME ? 1 : 0);

// apart formats x with the given decimals. It adds decimals while the printed number compares
// differently with one of the limits than x.
function apart(x, decimals, limits) {
  for (; ; decimals++) {
    const text = x.toFixed(decimals);
    if (decimals >= MOST_DIGITS || limits.every((l) => sideOf(x, l) === sideOf(Number(text), l)))
      return Number(text) === 0 ? text.replace('-', '') : text;
  }
}

// outward formats the bounds of an interval as a list of two texts.
function outward(i, scale, decimals, limits = []) {
  const [low, high] = [i.low * scale, i.high * scale];
  for (; ; decimals++) {
    const unit = 10 ** decimals;
    const below = Math.floor(low * unit + SAME) / unit;
    const above = Math.ceil(high * unit - SAME) / unit;
    if (
      decimals >= MOST_DIGITS ||
      limits.every((l) => sideOf(low, l) === sideOf(below, l) && sideOf(high, l) === sideOf(above, l))
    )
      return [below, above].map((x) => x.toFixed(decimals));
  }
}

const percent = (x, ...thresholds) =>
  known(x) ? `${apart(x * 100, 0, [0, 100, ...thresholds.map((t) => t * 100)])}\u00a0%` : DASH;

const between = (i) => (i ? `${outward(i, 100, 0).join('–')}\u00a0%` : '');

// rateText formats a pass rate. While a trial waits for a person's score, it formats the
// lowest and highest possible rate. It marks a mean over tasks.
function rateText(r, ...thresholds) {
  if (r.passRateBounds) return `${between(r.passRateBounds)} to review`;
  return percent(r.passRate, ...thresholds) + (known(r.passRate) && r.passRateBasis === 'tasks' ? ' by task' : '');
}

const score = (x, ...thresholds) => (known(x) ? apart(x, 2, [0, 1, ...thresholds]) : DASH);

const scores = (i) => outward(i, 1, 2).join('–');

const sign = (text) => (Number(text) > 0 ? `+${text}` : text.replace('-', Number(text) === 0 ? '' : '−'));

// signed formats a difference; zero has no sign.
const signed = (x, digits = 2) => sign(apart(x, digits, [0]));

// signedBetween formats an interval of differences. It excludes 0 if the exact interval does.
const signedBetween = (i, scale = 1, digits = 2) => `[${outward(i, scale, digits, [0]).map(sign).join(', ')}]`;

// duration formats milliseconds.
function duration(ms) {
  if (!known(ms)) return DASH;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  const whole = Math.round(s);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${count(Math.floor(whole / 3600))} h ${Math.floor(whole / 60) % 60} min`;
}

// short formats a number in few characters: 950, 1.2k, 34k, 5.6M.
function short(n) {
  if (!known(n)) return DASH;
  for (const [unit, sign] of [
    [1e12, 'T'],
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ]) {
    if (n >= unit * 0.9995) return (n / unit < 9.95 ? (n / unit).toFixed(1) : count(Math.round(n / unit))) + sign;
  }
  return Number.isInteger(n) ? String(n) : n.toPrecision(2);
}

// money formats US dollars.
function money(x) {
  if (!known(x)) return DASH;
  return x < 1e6 ? `$${apart(x, 4, [0])}` : `$${short(x)}`;
}

function bytes(n) {
  if (!known(n)) return DASH;
  if (n < 1024) return plural(n, 'byte');
  const kib = n / 1024;
  return kib < 1024 ? `${kib < 10 ? kib.toFixed(1) : Math.round(kib)} KiB` : `${(kib / 1024).toFixed(1)} MiB`;
}

const dates = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });

function date(text) {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) || at.getFullYear() < 1971 ? DASH : dates.format(at);
}

// offset formats the time since the start of an attempt: 0:03.2.
function offset(ms) {
  const s = Math.max(0, ms) / 1000;
  return `${Math.floor(s / 60)}:${(s % 60).toFixed(1).padStart(4, '0')}`;
}

const clip = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
