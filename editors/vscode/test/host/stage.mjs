// A stage is a server with a window in which scenarios play, one after another.

import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';

import { copyWorkspace, surroundings } from './build.mjs';
import { Explorer } from './explorer.mjs';
import { below, until } from './processes.mjs';
import { Server } from './server.mjs';
import { Window } from './window.mjs';

export class Stage {
  // open starts the server, and the window on a fresh copy of the workspace.
  static async open({ tools, browser, album, dir, name, ...options }) {
    const stage = new Stage();
    stage.album = album;
    stage.dir = dir;
    stage.workspace = await copyWorkspace(dir, name);
    stage.server = await Server.start(tools, dir, { env: surroundings(dir), ...options });
    try {
      stage.window = await Window.open(browser, stage.server.page(stage.workspace));
    } catch (error) {
      await stage.server.stop();
      throw error;
    }
    stage.explorer = new Explorer(stage.window);
    return stage;
  }

  async shot(name) {
    await this.window.shot(this.album.next(name));
  }

  // light takes another picture in a light theme.
  async light(name) {
    await this.theme('vs');
    await this.shot(`${name} light`);
    await this.theme('vs-dark');
  }

  async theme(kind) {
    await this.window.command('Preferences: Toggle between Light/Dark Themes');
    await this.window.locator(`.monaco-workbench.${kind}`).waitFor();
  }

  // shut makes the agents of suites/refactor wait; release lets them continue.
  shut() {
    return rm(path.join(this.dir, 'gate'), { force: true });
  }

  release() {
    return writeFile(path.join(this.dir, 'gate'), '');
  }

  // daemon returns the waza process that serves the window, or undefined.
  daemon() {
    return below(this.server.pid).find((p) => /\/waza (lsp|jsonrpc)/.test(p.args));
  }

  file(name) {
    return path.join(this.workspace, name);
  }

  // reset removes everything that earlier scenarios left in the window.
  async reset() {
    await this.release();
    await this.window.reload();
    await this.explorer.open();
  }

  // close ends everything, and returns the processes that had not ended on their own.
  async close() {
    await this.release(); // waiting agents would do no harm, but take time
    this.server.watch.look();
    await this.window.close();
    const left = await this.server.stop();
    if (existsSync(path.join(this.dir, 'gate'))) await this.shut();
    return left;
  }
}
