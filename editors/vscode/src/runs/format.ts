/** How runs are told of in few words. Nothing here knows VS Code. */
import type { Counts, Interval, Rate, RunInfo } from '../daemon/protocol';

const units: [seconds: number, name: string][] = [[31_536_000, 'year'], [2_592_000, 'month'], [86_400, 'day'], [3600, 'hour'], [60, 'min']];

/** Tells how long ago something was: "2 min ago". */
export function agoText(at: string, now = Date.now()): string {
  const seconds = (now - Date.parse(at)) / 1000;
  const unit = units.find(([length]) => seconds >= length);
  if (!unit) {
    return 'just now';
  }
  const n = Math.floor(seconds / unit[0]);
  return `${n} ${unit[1]}${n === 1 || unit[1] === 'min' ? '' : 's'} ago`;
}

/** Tells how long something took: "850 ms", "12 s", "3 min 20 s". */
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

/** How many have a verdict. */
export function endedOf(c: Counts): number {
  return c.passed + c.failed + c.errors + c.timeouts + c.cancelled + c.skipped + (c.needsReview ?? 0);
}

export function modelsOf(run: Pick<RunInfo, 'model' | 'models'>): string {
  return run.models?.length ? run.models.join(', ') : run.model ?? '';
}

/** What stands behind a run in the tree: "7/10 · 2 min ago · model". */
export function runDescription(run: RunInfo, now?: number): string {
  const state = run.status === 'completed' || run.status === 'running' ? '' : run.status;
  return [`${run.tasks.passed}/${run.tasks.total || endedOf(run.tasks)}`, state, agoText(run.startedAt, now), modelsOf(run)].filter(Boolean).join(' · ');
}

/** How a run went, in one word of those that have an icon. */
export type Outcome = 'running' | 'passed' | 'failed' | 'error' | 'cancelled' | 'interrupted' | 'review' | 'none';

/** An error outranks a failure: what was not measured is not known to be good. */
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

/** The outcome of a task by its verdict; an empty one is of a task that has not ended. */
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

// percentDigits is how many digits a share takes to differ from 0 and 100 %.
function percentDigits(share: number): number {
  let digits = 0;
  while (digits < 6 && share > 0 && share < 1 && [0, 100].includes(Number((share * 100).toFixed(digits)))) {
    digits++;
  }
  return digits;
}

/** What a tooltip adds to a count: the pass rate with its interval, or what persons can still make of it. */
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

// rangeText rounds outward, so that a range never excludes what lies in it.
function rangeText(range: Interval, digits: number): string {
  const unit = 10 ** digits;
  const low = Math.floor(range.low * 100 * unit + 1e-9) / unit;
  const high = Math.ceil(range.high * 100 * unit - 1e-9) / unit;
  return `${low} – ${high} %`;
}

/** A number of tokens in few characters: 950, 1.2k, 34k, 5.6M. */
export function shortText(n: number): string {
  for (const [size, sign] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']] as const) {
    if (n >= size * 0.9995) {
      return (n / size < 9.95 ? (n / size).toFixed(1) : String(Math.round(n / size))) + sign;
    }
  }
  return String(n);
}

/** A score with two decimals, and with more where it is close to 0 or 1. */
export function scoreText(score: number): string {
  let digits = 2;
  while (digits < 9 && score > 0 && score < 1 && [0, 1].includes(Number(score.toFixed(digits)))) {
    digits++;
  }
  return score.toFixed(digits);
}

/** US dollars with four decimals as everywhere in waza, and with more for less than that. */
export function moneyText(usd: number): string {
  let digits = 4;
  while (digits < 9 && usd > 0 && Number(usd.toFixed(digits)) === 0) {
    digits++;
  }
  return `$${usd.toFixed(digits)}`;
}
