import { execFile } from 'node:child_process';
import { findProgram, type Surroundings } from './find';
import { isSupported, minimumVersion, parseVersion } from './version';

/** A waza that can be started. */
export interface Program {
  file: string;
  version: string;
}

/** The reason why there is no program; message is for people. */
export interface NoProgram {
  reason: 'not found' | 'not waza' | 'too old';
  message: string;
}

/** Time for a program to print its version: the first start from a cold disk is slow. */
const versionTimeoutMs = 15_000;

/** Finds the waza to start, and checks that it is one and new enough. */
export async function locate(setting: string, where: Surroundings, env: NodeJS.ProcessEnv): Promise<Program | NoProgram> {
  const file = await findProgram(setting, where);
  if (file === undefined) {
    return { reason: 'not found', message: notFound(setting) };
  }
  const output = await run(file, ['version', '--json'], env);
  const version = output.ok ? parseVersion(output.stdout)?.version : undefined;
  if (version === undefined) {
    return { reason: 'not waza', message: `${file} is not waza, or does not print its version${output.ok ? '.' : `: ${output.error}`}` };
  }
  if (!isSupported(version)) {
    return { reason: 'too old', message: `${file} is waza ${version}; this extension needs ${minimumVersion} or newer.` };
  }
  return { file, version };
}

export function isProgram(found: Program | NoProgram): found is Program {
  return 'file' in found;
}

function notFound(setting: string): string {
  return setting.trim() === ''
    ? 'waza was not found on PATH. It runs the suites of this workspace and checks them while you type.'
    : `The setting waza.path names ${setting.trim()}, which does not exist.`;
}

type VersionOutput = { ok: true; stdout: string } | { ok: false; error: string };

function run(file: string, args: string[], env: NodeJS.ProcessEnv): Promise<VersionOutput> {
  return new Promise((resolve) => {
    const options = { env, timeout: versionTimeoutMs, killSignal: 'SIGKILL', maxBuffer: 64 * 1024, windowsHide: true } as const;
    execFile(file, args, options, (error, stdout) => {
      resolve(error ? { ok: false, error: firstLine(error.message) } : { ok: true, stdout });
    });
  });
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}
