// A code-server with the real extension host and its own data.

import { execFile, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

import { kill, until, Watch } from './processes.mjs';

// Settings for a quiet window; the others keep their defaults.
const SETTINGS = {
  'workbench.startupEditor': 'none',
  'workbench.tips.enabled': false,
  'workbench.colorTheme': 'Dark 2026',
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'workbench.layoutControl.enabled': false,
  'chat.commandCenter.enabled': false,
  'chat.disableAIFeatures': true,
  'window.commandCenter': false,
  'editor.wordBasedSuggestions': 'off', // so that only waza's completions appear
  'extensions.ignoreRecommendations': true,
  'extensions.autoCheckUpdates': false,
  'extensions.autoUpdate': false,
  'git.enabled': false,
  'security.workspace.trust.startupPrompt': 'never', // a banner in the window shows it
  'files.autoSave': 'off',
  'files.hotExit': 'off',
  'remote.autoForwardPorts': false,
  'telemetry.telemetryLevel': 'off',
};

// The servers end whenever the tests end, even by a signal.
const running = new Set();
process.on('exit', () => running.forEach((server) => server.watch.look().end()));

export class Server {
  // install installs extensions, .vsix files, for start. dir must be empty or contain
  // the result of an earlier install.
  static async install(tools, dir, ...vsix) {
    const args = [tools.codeServer, ...places(dir)];
    for (const file of vsix) args.push('--install-extension', file);
    const { stdout, stderr } = await promisify(execFile)(tools.node, args, { env: environment(tools, dir), timeout: 120_000 });
    if (!/successfully installed/.test(stdout)) throw new Error(`the extension was not installed:\n${stdout}${stderr}`);
  }

  // start resolves when the page can be opened. dir is the directory of install; env is
  // added to the environment of everything that the server starts.
  static async start(tools, dir, { env = {}, settings = {}, trust = false, port = 0 } = {}) {
    const server = new Server();
    server.dir = dir;
    await server.configure(settings);
    const args = [tools.codeServer, '--auth', 'none', '--bind-addr', `127.0.0.1:${port}`, ...places(dir)];
    args.push('--disable-telemetry', '--disable-update-check', '--disable-getting-started-override');
    if (!trust) args.push('--disable-workspace-trust');
    server.process = spawn(tools.node, args, {
      detached: true, // its own process group, which can be ended as one
      env: { ...environment(tools, dir), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    server.watch = new Watch(server.process.pid);
    running.add(server);
    server.url = await listening(server.process, path.join(dir, 'server.log'));
    return server;
  }

  get pid() {
    return this.process.pid;
  }

  // configure writes the user's settings, which a window applies at once.
  async configure(settings) {
    const user = path.join(this.dir, 'data/User');
    await mkdir(user, { recursive: true });
    await writeFile(path.join(user, 'settings.json'), JSON.stringify({ ...SETTINGS, ...settings }, null, 2));
  }

  page(folder) {
    return `${this.url}/?folder=${encodeURIComponent(folder)}`;
  }

  // stop ends the server and its processes, and returns the processes that remained.
  async stop() {
    this.watch.look();
    kill(-this.pid, 'SIGTERM');
    await until('the end of code-server', 20, () => this.watch.left().length === 0).catch(() => {});
    running.delete(this);
    return this.watch.end();
  }
}

function places(dir) {
  return ['--config', path.join(dir, 'config.yaml'), '--user-data-dir', path.join(dir, 'data'), '--extensions-dir', path.join(dir, 'extensions')];
}

// environment removes variables that show code-server that it runs inside an editor,
// and hides the person's own directories.
function environment(tools, dir) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(VSCODE_|CODE_SERVER_|WAZA_|PORT$|PASSWORD$)/.test(name)));
  return {
    ...env,
    VSCODE_CLI: '1', // the environment as it is, instead of that of a login shell
    PATH: [path.dirname(tools.node), env.PATH].join(path.delimiter),
    HOME: path.join(dir, 'home'),
    XDG_CONFIG_HOME: path.join(dir, 'home/.config'),
    XDG_DATA_HOME: path.join(dir, 'home/.local/share'),
    XDG_CACHE_HOME: path.join(dir, 'home/.cache'),
  };
}

// listening waits for the address that the server prints, and keeps all its output.
function listening(process, file) {
  const log = createWriteStream(file, { flags: 'a' });
  process.stderr.pipe(log, { end: false });
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`code-server did not listen within 60 s, see ${file}`)), 60_000);
    process.once('exit', (code) => reject(new Error(`code-server ended with code ${code}, see ${file}`)));
    createInterface({ input: process.stdout }).on('line', (line) => {
      log.write(`${line}\n`);
      const address = /HTTP server listening on (http:\/\/\S+?)\/?$/.exec(line);
      if (!address) return;
      clearTimeout(late);
      resolve(address[1]);
    });
  });
}
