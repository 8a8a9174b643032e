import * as vscode from 'vscode';
import { ConnectionLost } from '../daemon/connection';
import { codes } from '../daemon/protocol';
import type { RunTracker } from '../model/tracker';
import type { RunRequest, Runs } from '../services';

/** Starts and ends runs by the tracker, and tells the user what went wrong. */
export class RunStarter implements Runs {
  constructor(private readonly tracker: RunTracker) {}

  start(request: RunRequest): Promise<string | undefined> {
    return this.telling(async () => {
      const { tasks, trial, ...options } = request;
      const some = tasks && tasks.length > 0;
      const started = some
        ? await this.tracker.runTasks({ ...options, tasks, ...(trial === undefined ? {} : { trial }) })
        : await this.tracker.runSuite(options);
      return started.runId;
    });
  }

  resume(runId: string): Promise<string | undefined> {
    return this.telling(async () => (await this.tracker.resume(runId)).runId);
  }

  async cancel(runId?: string): Promise<void> {
    const ids = runId === undefined ? this.tracker.running.map((run) => run.runId) : [runId];
    await this.telling(() => Promise.all(ids.map((id) => this.tracker.cancel(id))));
  }

  private async telling<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      void vscode.window.showErrorMessage(messageOf(error));
      return undefined;
    }
  }
}

/** What to show of an error of the daemon. */
export function messageOf(error: unknown): string {
  if (error instanceof ConnectionLost) {
    return error.message;
  }
  const e = error as { code?: number; message?: string; data?: { errors?: string[]; reason?: string } };
  const message = e.message ?? String(error);
  if (e.code === codes.validationFailed && e.data?.errors?.length) {
    const more = e.data.errors.length - 1;
    return `The suite is invalid: ${e.data.errors[0]}${more > 0 ? ` (and ${more} more)` : ''}`;
  }
  return e.data?.reason === undefined || message.includes(e.data.reason) ? message : `${message}: ${e.data.reason}`;
}
