/** The meaning of an item of the tree: a suite, a task of it, or a trial of a task. */
export interface Chosen {
  path: string;
  /** Id of the task in the run, including its cell; absent for the whole suite. */
  task?: string;
  trial?: number;
}

/** One run to start. */
export interface Planned {
  path: string;
  tasks?: string[];
  trial?: number;
}

/**
 * Returns the runs for a selection: one for each suite, and one for each number of a trial that was
 * selected alone. tasksOf returns the tasks of a suite, so that some can be excluded.
 */
export function plan(
  include: readonly Chosen[], exclude: readonly Chosen[], tasksOf: (path: string) => readonly string[],
): Planned[] {
  const runs: Planned[] = [];
  for (const path of new Set(include.map((c) => c.path))) {
    const here = include.filter((c) => c.path === path);
    const out = exclude.filter((c) => c.path === path);
    if (out.some((c) => c.task === undefined)) {
      continue;
    }
    const outTasks = new Set(out.filter((c) => c.trial === undefined).map((c) => c.task));
    runs.push(...ofSuite(path, here, outTasks, tasksOf));
  }
  return runs;
}

function ofSuite(
  path: string, here: readonly Chosen[], out: ReadonlySet<string | undefined>, tasksOf: (path: string) => readonly string[],
): Planned[] {
  if (here.some((c) => c.task === undefined)) {
    if (out.size === 0) {
      return [{ path }];
    }
    const rest = tasksOf(path).filter((id) => !out.has(id));
    return rest.length > 0 ? [{ path, tasks: rest }] : [];
  }
  const runs: Planned[] = [];
  const whole = unique(here.filter((c) => c.trial === undefined).map((c) => c.task)).filter((id) => !out.has(id));
  if (whole.length > 0) {
    runs.push({ path, tasks: whole });
  }
  const single = here.filter((c) => c.trial !== undefined && !whole.includes(c.task ?? '') && !out.has(c.task));
  for (const trial of new Set(single.map((c) => c.trial))) {
    if (trial !== undefined) {
      runs.push({ path, trial, tasks: unique(single.filter((c) => c.trial === trial).map((c) => c.task)) });
    }
  }
  return runs;
}

function unique(ids: readonly (string | undefined)[]): string[] {
  return [...new Set(ids.filter((id) => id !== undefined))];
}
