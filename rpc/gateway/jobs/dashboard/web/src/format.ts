/** Formats a share from 0 to 1 as a whole percentage. */
export const percent = (x: number): string => `${Math.round(x * 100)} %`;

/** Formats a duration in milliseconds. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  const m = Math.floor(s / 60);
  if (m < 60) return `${m} min ${Math.round(s % 60)} s`;
  return `${Math.floor(m / 60)} h ${m % 60} min`;
}

/** Formats an amount in US dollars. */
export const dollars = (x: number): string => `$${x >= 1 ? x.toFixed(2) : Number(x.toPrecision(2))}`;

export const count = (n: number): string => n.toLocaleString('en');

const clock = new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const day = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric' });
const full = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' });

/** Formats a time briefly. */
export function when(iso: string): string {
  const t = new Date(iso);
  if (Number.isNaN(t.getTime())) return '';
  const now = new Date();
  if (t.toDateString() === now.toDateString()) return clock.format(t);
  const year = t.getFullYear() === now.getFullYear() ? '' : ` ${t.getFullYear()}`;
  return `${day.format(t)}${year} ${clock.format(t)}`;
}

export function exactly(iso: string): string {
  const t = new Date(iso);
  return Number.isNaN(t.getTime()) ? '' : full.format(t);
}

/** Formats a number with a noun: "1 task", "2 tasks". */
export const plural = (n: number, noun: string): string => `${count(n)} ${noun}${n === 1 ? '' : 's'}`;

/** Formats a type of job for people. */
export const kindOf = (type: string): string => type.replaceAll('_', ' ');
