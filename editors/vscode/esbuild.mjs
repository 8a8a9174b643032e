// Bundles the extension into dist/extension.js or, with --tests, each unit test into
// out/test, so that node can run them.
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import esbuild from 'esbuild';

const flags = new Set(process.argv.slice(2));

mkdirSync('out', { recursive: true }); // vsce writes the package there

const shared = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  sourcemap: flags.has('--production') ? false : 'linked',
  minify: flags.has('--production'),
  logLevel: 'warning',
};

const extension = {
  ...shared,
  entryPoints: ['src/extension.ts'],
  outfile: 'dist/extension.js',
  format: 'cjs',
  external: ['vscode'],
};

/** The script of the results panel, which runs in its page. */
const panel = {
  ...shared,
  platform: 'browser',
  target: 'es2022',
  entryPoints: ['src/panel/web/main.ts'],
  outfile: 'dist/panel.js',
  format: 'iife',
};

if (flags.has('--tests')) {
  rmSync('out/test', { recursive: true, force: true });
  await esbuild.build({
    ...shared,
    entryPoints: unitTests(),
    outdir: 'out/test',
    outbase: 'test/unit',
    outExtension: { '.js': '.mjs' },
    format: 'esm',
    sourcemap: 'inline',
  });
} else if (flags.has('--watch')) {
  for (const options of [extension, panel]) {
    const context = await esbuild.context(options);
    await context.watch();
  }
} else {
  rmSync('dist', { recursive: true, force: true });
  await esbuild.build(extension);
  await esbuild.build(panel);
}

function unitTests() {
  return readdirSync('test/unit', { recursive: true })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join('test/unit', name));
}
