// Numbers as people read them. A dash stands for what is not known.

const DASH = '–';

const known = (x) => x !== null && x !== undefined && x >= 0 && Number.isFinite(x);

const integers = new Intl.NumberFormat('en');

const count = (n) => integers.format(n);

// plural gives "1 task", "2 tasks".
const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many || `${one}s`}`;

const percent = (x) => (known(x) ? `${Math.round(x * 100)}\u00a0%` : DASH);

const between = (i) => (i ? `${Math.round(i.low * 100)}–${Math.round(i.high * 100)}\u00a0%` : '');

const score = (x) => (known(x) ? x.toFixed(2) : DASH);

// signed gives a difference, and no sign to what rounds to nothing.
function signed(x, digits = 2) {
  const text = Math.abs(x).toFixed(digits);
  return Number(text) === 0 ? text : (x < 0 ? '−' : '+') + text;
}

// duration takes milliseconds.
function duration(ms) {
  if (!known(ms)) return DASH;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  const whole = Math.round(s);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${count(Math.floor(whole / 3600))} h ${Math.floor(whole / 60) % 60} min`;
}

// short gives a number in few characters: 950, 1.2k, 34k, 5.6M.
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

// money takes US dollars.
function money(x) {
  if (!known(x)) return DASH;
  if (x === 0) return '$0';
  if (x < 0.0001) return '<$0.0001';
  if (x < 1) return `$${x.toFixed(x < 0.01 ? 4 : 3)}`;
  return x < 1e6
    ? `$${x.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`
    : `$${short(x)}`;
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

// offset gives the time since an attempt began: 0:03.2.
function offset(ms) {
  const s = Math.max(0, ms) / 1000;
  return `${Math.floor(s / 60)}:${(s % 60).toFixed(1).padStart(4, '0')}`;
}

const clip = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
