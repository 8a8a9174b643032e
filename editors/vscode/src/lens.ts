import * as vscode from 'vscode';
import type { Middleware } from 'vscode-languageclient';
import type { Services } from './services';

/** Argument of the commands of the daemon's code lenses. */
interface LensArgument {
  path?: string;
  tasks?: string[];
  runId?: string;
  taskId?: string;
  base?: string;
  run?: string;
}

/**
 * Handles the commands of the daemon's code lenses, so that their runs appear in the Test Explorer
 * and in the panel. The daemon itself would only show them as progress.
 */
export function lensCommands(services: () => Services): Middleware {
  return {
    executeCommand: async (command, args: unknown[], next) => {
      const argument = argumentOf(args[0]);
      switch (command) {
        case 'waza.run':
          return run(services(), argument, false);
        case 'waza.debug':
          return run(services(), argument, true);
        case 'waza.cancel':
          return services().runs.cancel(argument.runId);
        case 'waza.showRun':
          return argument.runId === undefined ? services().results.show() : services().results.show({
            runId: argument.runId, ...(argument.taskId === undefined ? {} : { taskId: argument.taskId }),
          });
        case 'waza.compare':
          return compare(services(), argument);
        default:
          return next(command, args) as unknown;
      }
    },
  };
}

async function run(services: Services, argument: LensArgument, debug: boolean): Promise<void> {
  if (argument.path !== undefined) {
    await services.runs.run({ path: argument.path, ...(argument.tasks ? { tasks: argument.tasks } : {}) }, debug ? 'debug' : 'run');
  }
}

/** Compares two runs, or the last two of a suite. */
async function compare(services: Services, argument: LensArgument): Promise<void> {
  const { base, run: newer, path } = argument;
  if (base !== undefined && newer !== undefined) {
    await services.results.compare(base, newer);
    return;
  }
  const { runs } = await services.daemon.request('run.list', { limit: 2, ...(path === undefined ? {} : { path }) });
  const [last, before] = runs;
  if (!last || !before) {
    void vscode.window.showInformationMessage('There are fewer than two runs to compare.');
    return;
  }
  await services.results.compare(base ?? before.runId, newer ?? last.runId);
}

function argumentOf(value: unknown): LensArgument {
  return typeof value === 'object' && value !== null ? value : {};
}
