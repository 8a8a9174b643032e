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

/** Reruns the suite of a run, with the executor, agent and model of that run. */
export function again(r: Run): Promise<void> {
  const options: Record<string, unknown> = { executor: r.executor };
  if (r.agent) options.agent = r.agent;
  if (r.models?.length) options.model = r.models;
  else if (r.model) options.model = r.model;
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
