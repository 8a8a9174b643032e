/**
 * Returns the task of the suite for a run's task id, and the cell of the matrix:
 * `greet[model=small]` is greet in the cell model=small. Ids of the suite itself can contain
 * brackets, so known ids have priority.
 */
export function splitId(id: string, isTask: (id: string) => boolean): { task: string; cell: string | undefined } {
  if (isTask(id) || !id.endsWith(']')) {
    return { task: id, cell: undefined };
  }
  const at = id.lastIndexOf('[');
  return at > 0 ? { task: id.slice(0, at), cell: id.slice(at + 1, -1) } : { task: id, cell: undefined };
}

/** Formats a duration for people: 830 ms, 1.2 s, 3 min 20 s. */
export function duration(ms: number): string {
  if (ms < 1000) {
    return `${Math.round(ms)} ms`;
  }
  if (ms < 60_000) {
    return `${(ms / 1000).toFixed(1)} s`;
  }
  const s = Math.round(ms / 1000);
  return s % 60 === 0 ? `${s / 60} min` : `${Math.floor(s / 60)} min ${s % 60} s`;
}

/** Converts line ends for the terminal of the test output. */
export function terminalText(text: string): string {
  return text.replace(/\r\n|\r|\n/g, '\r\n');
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`;
}
