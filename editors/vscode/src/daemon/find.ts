import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';

/** Places where a program can be. */
export interface Surroundings {
  env: NodeJS.ProcessEnv;
  platform: NodeJS.Platform;
  home: string;
  /** First folder of the workspace; undefined without one. */
  folder: string | undefined;
}

export function surroundings(folder: string | undefined): Surroundings {
  return { env: process.env, platform: process.platform, home: homedir(), folder };
}

/** Returns the setting waza.path with ~ and ${workspaceFolder} replaced. */
export function expand(setting: string, where: Surroundings): string {
  let p = setting.trim();
  if (p === '~' || p.startsWith('~/') || p.startsWith('~\\')) {
    p = path.join(where.home, p.slice(1));
  }
  p = p.replaceAll('${workspaceFolder}', where.folder ?? '').replaceAll('${userHome}', where.home);
  const isName = !p.includes('/') && !p.includes('\\');
  return isName || path.isAbsolute(p) || where.folder === undefined ? p : path.join(where.folder, p);
}

/**
 * Returns the files that may be waza, best first: those on PATH, then those in the directories of
 * go install.
 */
export function candidates(name: string, where: Surroundings): string[] {
  const { env, platform, home } = where;
  const file = platform === 'win32' && !name.toLowerCase().endsWith('.exe') ? `${name}.exe` : name;
  const dirs = (env['PATH'] ?? env['Path'] ?? '').split(platform === 'win32' ? ';' : ':');
  if (env['GOBIN'] !== undefined) {
    dirs.push(env['GOBIN']);
  }
  for (const gopath of (env['GOPATH'] ?? '').split(platform === 'win32' ? ';' : ':')) {
    dirs.push(gopath && path.join(gopath, 'bin'));
  }
  dirs.push(path.join(home, 'go', 'bin'), path.join(home, '.local', 'bin'));
  if (platform !== 'win32') {
    dirs.push('/usr/local/bin', '/opt/homebrew/bin');
  }
  // Relative directories of PATH would allow a workspace to supply the program.
  return [...new Set(dirs.filter((dir) => path.isAbsolute(dir)).map((dir) => path.join(dir, file)))];
}

/** Returns the program to start: the one in the setting, else the first that exists, else undefined. */
export async function findProgram(setting: string, where: Surroundings): Promise<string | undefined> {
  const wanted = expand(setting, where);
  if (wanted !== '' && (wanted.includes('/') || wanted.includes('\\'))) {
    return (await isProgram(wanted)) ? wanted : undefined;
  }
  for (const file of candidates(wanted === '' ? 'waza' : wanted, where)) {
    if (await isProgram(file)) {
      return file;
    }
  }
  return undefined;
}

async function isProgram(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}
