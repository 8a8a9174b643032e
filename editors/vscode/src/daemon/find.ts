import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';

/** Where a program may be. */
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

/** What waza.path says, with ~ and ${workspaceFolder} put in. */
export function expand(setting: string, where: Surroundings): string {
  let p = setting.trim();
  if (p === '~' || p.startsWith('~/') || p.startsWith('~\\')) {
    p = path.join(where.home, p.slice(1));
  }
  p = p.replaceAll('${workspaceFolder}', where.folder ?? '').replaceAll('${userHome}', where.home);
  const isName = !p.includes('/') && !p.includes('\\');
  return isName || path.isAbsolute(p) || where.folder === undefined ? p : path.join(where.folder, p);
}

/** The files that may be waza, the one to take first: those on PATH, then where go install puts programs. */
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
  // Relative directories of PATH would let a workspace bring a program along.
  return [...new Set(dirs.filter((dir) => path.isAbsolute(dir)).map((dir) => path.join(dir, file)))];
}

/** The program to start: what the setting names, else the first that is there; undefined when none is. */
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
