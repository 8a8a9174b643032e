import { complain, notice } from '../net/notices';
import { go } from '../route';
import * as jobs from '../net/jobs';
import { call } from '../net/rpc';
import type { Run } from '../net/runs';

/** Starts a run of a suite and shows it. */
export async function start(path: string, options: object = {}): Promise<void> {
  try {
    const { runId } = await call<{ runId: string }>('eval.run', { path, ...options });
    go('jobs', runId);
  } catch (e) {
    complain(e);
  }
}

/** The part of the reply of run.status about the question of a run. */
interface Asked {
  question?: object;
  /** The question as eval.run takes it; absent if the suite asks it. */
  decide?: { b: string };
  tasks?: string[];
  tags?: string[];
}

/**
 * Reruns the suite of a run, with the executor, agent and model of that run. A run that decided a question is asked
 * it again, about the same tasks.
 */
export async function again(r: Run): Promise<void> {
  const options: Record<string, unknown> = { executor: r.executor };
  if (r.agent) options.agent = r.agent;
  let asked: Asked;
  try {
    asked = await call<Asked>('run.status', { runId: r.runId });
  } catch (e) {
    complain(e);
    return;
  }
  const { question, decide, tasks, tags } = asked;
  if (!question || decide?.b === '.') {
    if (r.models?.length) options.model = r.models;
    else if (r.model) options.model = r.model;
  }
  if (question) Object.assign(options, decide && { decide }, tasks && { tasks }, tags && { tags });
  return start(r.suite.path, options);
}

export async function resume(runId: string): Promise<void> {
  try {
    await call('run.resume', { runId });
    go('jobs', runId);
  } catch (e) {
    complain(e);
  }
}

export function cancel(id: string): void {
  if (jobs.cancel(id)) notice('Cancelling. Running trials are stopped.');
  else notice('the server is not reachable', 'problem');
}
