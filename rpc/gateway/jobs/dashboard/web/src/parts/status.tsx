const MARKS: Record<string, string> = {
  pending: '·',
  queued: '·',
  running: '▸',
  done: '✓',
  completed: '✓',
  passed: '✓',
  failed: '✗',
  error: '!',
  timeout: '◷',
  cancelled: '–',
  interrupted: '‖',
  skipped: '·',
  needs_review: '?',
};

/** Shows a state as a mark, a word and a colour. */
export function Status({ of }: { of: string }) {
  return (
    <span class={`status is-${of}`}>
      <span aria-hidden="true">{MARKS[of] ?? '·'}</span> {of === 'done' ? 'completed' : of.replace('_', ' ')}
    </span>
  );
}

/** Shows progress. */
export function Progress({ percent, label }: { percent: number; label: string }) {
  return (
    <span class="progress" role="progressbar" aria-valuenow={percent} aria-valuemin={0} aria-valuemax={100} aria-label={label}>
      <span style={{ width: `${percent}%` }} />
    </span>
  );
}
