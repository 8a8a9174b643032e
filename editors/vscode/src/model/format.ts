/** Short descriptions of runs. This module does not depend on VS Code. */
import type { Counts, Interval, Rate, RunInfo, Suspicion } from '../daemon/protocol';

const units: [seconds: number, name: string][] = [[31_536_000, 'year'], [2_592_000, 'month'], [86_400, 'day'], [3600, 'hour'], [60, 'min']];

/** Formats a time relative to now: "2 min ago". */
export function agoText(at: string, now = Date.now()): string {
  const seconds = (now - Date.parse(at)) / 1000;
  const unit = units.find(([length]) => seconds >= length);
  if (!unit) {
    return 'just now';
  }
  const n = Math.floor(seconds / unit[0]);
  return `${n} ${unit[1]}${n === 1 || unit[1] === 'min' ? '' : 's'} ago`;
}

/** Formats a duration: "850 ms", "12 s", "3 min 20 s". */
export function durationText(ms: number): string {
  if (ms < 1000) {
    return `${Math.round(ms)} ms`;
  }
  const s = ms / 1000;
  if (s < 60) {
    return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  }
  const whole = Math.round(s);
  return whole < 3600 ? `${Math.floor(whole / 60)} min ${whole % 60} s` : `${Math.floor(whole / 3600)} h ${Math.floor(whole / 60) % 60} min`;
}

/** Returns how many have a verdict. */
export function endedOf(c: Counts): number {
  return c.passed + c.failed + c.errors + c.timeouts + c.cancelled + c.skipped + (c.needsReview ?? 0);
}

export function modelsOf(run: Pick<RunInfo, 'model' | 'models'>): string {
  return run.models?.length ? run.models.join(', ') : run.model ?? '';
}

/** Returns the description of a run in the tree: "7/10 · 2 min ago · model". */
export function runDescription(run: RunInfo, now?: number): string {
  const state = run.status === 'completed' || run.status === 'running' ? '' : run.status;
  return [`${run.tasks.passed}/${run.tasks.total || endedOf(run.tasks)}`, state, isDamaged(run) && 'damaged record', agoText(run.startedAt, now), modelsOf(run)].filter(Boolean).join(' · ');
}

function isDamaged({ damage: d }: RunInfo): boolean {
  return d !== undefined && (d.events > 0 || d.parts > 0 || (d.files?.length ?? 0) > 0);
}

/** The result of a run, as a word that has an icon. */
export type Outcome = 'running' | 'passed' | 'failed' | 'error' | 'cancelled' | 'interrupted' | 'review' | 'none';

/** An error outranks a failure, because the result is unknown. */
export function outcomeOf(run: RunInfo): Outcome {
  switch (run.status) {
    case 'running': return 'running';
    case 'cancelled': return 'cancelled';
    case 'interrupted': return 'interrupted';
    case 'failed': return 'error';
    case 'completed': break;
  }
  const c = run.tasks;
  if (c.errors) {
    return 'error';
  }
  if (c.failed + c.timeouts) {
    return 'failed';
  }
  return c.needsReview ? 'review' : c.passed ? 'passed' : 'none';
}

/** Returns the outcome for the verdict of a task; an empty verdict means that it has not ended. */
export function outcomeOfVerdict(verdict: string | undefined, running: boolean): Outcome {
  switch (verdict) {
    case 'passed': return 'passed';
    case 'failed':
    case 'timeout': return 'failed';
    case 'error': return 'error';
    case 'cancelled':
    case 'skipped': return 'cancelled';
    case 'needs_review': return 'review';
    default: return running ? 'running' : 'none';
  }
}

// Returns how many digits distinguish a share from 0 and 100 %.
function percentDigits(share: number): number {
  let digits = 0;
  while (digits < 6 && share > 0 && share < 1 && [0, 100].includes(Number((share * 100).toFixed(digits)))) {
    digits++;
  }
  return digits;
}

/**
 * Returns the text after a count in a tooltip: the pass rate with its interval, or the rates that
 * reviews can still lead to.
 */
export function rateText(rate: Rate & Counts): string {
  if (rate.passRateBounds) {
    return `, ${rangeText(rate.passRateBounds, 0)} once ${rate.needsReview ?? 0} are reviewed`;
  }
  if (rate.passRate === null) {
    return '';
  }
  const digits = percentDigits(rate.passRate);
  return `, ${(rate.passRate * 100).toFixed(digits)} %${rate.passRateBasis === 'tasks' ? ' by task' : ''}${rate.passRateInterval ? ` [${rangeText(rate.passRateInterval, digits)}]` : ''}`;
}

// Formats a range. It rounds outward, so that the shown range contains the real one.
function rangeText(range: Interval, digits: number): string {
  const unit = 10 ** digits;
  const low = Math.floor(range.low * 100 * unit + 1e-9) / unit;
  const high = Math.ceil(range.high * 100 * unit - 1e-9) / unit;
  return `${low} – ${high} %`;
}

/** Formats a number of tokens briefly: 950, 1.2k, 34k, 5.6M. */
export function shortText(n: number): string {
  for (const [size, sign] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']] as const) {
    if (n >= size * 0.9995) {
      return (n / size < 9.95 ? (n / size).toFixed(1) : String(Math.round(n / size))) + sign;
    }
  }
  return String(n);
}

/** Formats a score with two decimals, and with more if it is close to 0 or 1. */
export function scoreText(score: number): string {
  let digits = 2;
  while (digits < 9 && score > 0 && score < 1 && [0, 1].includes(Number(score.toFixed(digits)))) {
    digits++;
  }
  return score.toFixed(digits);
}

/** Formats US dollars with four decimals, as everywhere in waza, and small amounts with more. */
export function moneyText(usd: number): string {
  let digits = 4;
  while (digits < 9 && usd > 0 && Number(usd.toFixed(digits)) === 0) {
    digits++;
  }
  return `$${usd.toFixed(digits)}`;
}

/** Returns how many passes are suspicious; empty for none. */
export function suspiciousText(n: number | undefined): string {
  return n ? `${n} suspicious` : '';
}

/** Describes a suspicious move in one line, like the command line. */
export function suspicionText(s: Suspicion): string {
  return `trial ${s.trialNum}: ${s.rule} in ${s.place}: ${s.evidence}`;
}
