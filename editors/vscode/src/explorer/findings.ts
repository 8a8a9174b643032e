import type { GraderResult, TrialResult } from '../daemon/protocol';
import { scoreText } from '../model/format';

/** A failed check of a grader in one or several trials of a task. */
export interface Finding {
  /** Undefined if the failure is not from a grader. */
  grader: string | undefined;
  message: string;
  expected?: string;
  actual?: string;
  /** The affected trials, in order. */
  trials: number[];
}

/** Maximum number of list lines to show; a grader can have thousands. */
const maxLines = 200;
/** Maximum number of characters of an output to show next to the expected one. */
const maxOutput = 8_000;

/** Returns the reasons why a trial did not pass: the graders that failed, else the error. */
export function findingsOf(trial: TrialResult): Finding[] {
  const findings = (trial.graders ?? [])
    .filter((g) => !g.passed && g.needsReview !== true)
    .map((g) => ofGrader(g, trial));
  if (trial.error !== undefined && trial.error !== '') {
    findings.push({ grader: undefined, message: trial.error, trials: [trial.trialNum] });
  }
  if (findings.length === 0) {
    findings.push({ grader: undefined, message: plainMessage(trial.verdict, trial.score ?? undefined), trials: [trial.trialNum] });
  }
  return findings;
}

/**
 * Merges the same findings of several trials, the most frequent first. The actual values differ
 * from trial to trial: the value of the first one is shown.
 */
export function merged(findings: readonly Finding[]): Finding[] {
  const byText = new Map<string, Finding>();
  for (const f of findings) {
    const key = JSON.stringify([f.grader, f.expected ?? f.message]);
    const same = byText.get(key);
    if (same) {
      same.trials.push(...f.trials);
    } else {
      byText.set(key, { ...f, trials: [...f.trials] });
    }
  }
  return [...byText.values()].sort((a, b) => b.trials.length - a.trials.length);
}

/** Returns the message for a verdict without further details. */
export function plainMessage(verdict: string, score: number | undefined): string {
  const scored = score === undefined ? '' : ` with score ${scoreText(score)}`;
  switch (verdict) {
    case 'error':
      return 'The trial could not be executed.';
    case 'timeout':
      return 'The trial took too long.';
    default:
      return `The trial ${verdict}${scored}.`;
  }
}

function ofGrader(g: GraderResult, trial: TrialResult): Finding {
  const said = g.error ?? g.feedback ?? '';
  const finding: Finding = { grader: g.name, message: said === '' ? `score ${scoreText(g.score)}` : said, trials: [trial.trialNum] };
  return { ...finding, ...compared(g.details, trial.output) };
}

/**
 * Returns expected and actual as texts, if the grader's details contain them: compared lists, or
 * single checks.
 */
function compared(details: unknown, output: string): { expected: string; actual: string } | undefined {
  if (typeof details !== 'object' || details === null) {
    return undefined;
  }
  if ('expected' in details && 'actual' in details) {
    return { expected: text(details.expected), actual: text(details.actual) };
  }
  if (Array.isArray(details) && details.length > 0 && details.every(isCheck)) {
    const failed = details.filter((c) => !c.passed).slice(0, maxLines);
    const onOutput = failed.every((c) => c.detail?.startsWith('the output') === true);
    return {
      expected: failed.map((c) => c.check).join('\n'),
      actual: onOutput ? clipped(output) : failed.map((c) => c.detail ?? `not: ${c.check}`).join('\n'),
    };
  }
  return undefined;
}

function clipped(output: string): string {
  const shown = output.trim();
  return shown.length > maxOutput ? `${shown.slice(0, maxOutput)} …` : shown;
}

interface Check {
  check: string;
  passed: boolean;
  detail?: string;
}

function isCheck(value: unknown): value is Check {
  return typeof value === 'object' && value !== null
    && 'check' in value && typeof value.check === 'string' && 'passed' in value && typeof value.passed === 'boolean';
}

function text(value: unknown): string {
  if (Array.isArray(value)) {
    const lines: string[] = value.slice(0, maxLines).map(one);
    return value.length > maxLines ? [...lines, `… and ${value.length - maxLines} more`].join('\n') : lines.join('\n');
  }
  return one(value);
}

function one(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, undefined, 2);
}
