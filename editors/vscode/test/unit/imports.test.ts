import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

/**
 * The folders of src, the lowest first. A file imports its own folder and lower ones. The files of
 * src itself connect the parts, so they are at the top.
 */
const folders = ['daemon', 'model', 'services', 'explorer', 'runs', 'panel', 'panel/web', '.'];

/** The imports of each file of src, types included, as paths from src. */
const imports = new Map(readdirSync('src', { recursive: true, encoding: 'utf8' })
  .map((name) => name.split(path.sep).join('/'))
  .filter((name) => name.endsWith('.ts'))
  .map((name) => [name, importsOf(name)]));

function importsOf(file: string): string[] {
  const source = readFileSync(path.join('src', file), 'utf8');
  return [...source.matchAll(/\b(?:from|import|import\()\s*'(\.[^']*)'/g)].map(([, to = '']) => {
    const name = path.posix.join(path.posix.dirname(file), to);
    const found = [`${name}.ts`, `${name}/index.ts`].find((f) => existsSync(path.join('src', f)));
    assert.ok(found, `src/${file} imports ${to}, which does not exist`);
    return found;
  });
}

function level(file: string): number {
  const folder = path.posix.dirname(file);
  assert.ok(folders.includes(folder), `test/unit/imports.test.ts does not list src/${folder}`);
  return folders.indexOf(folder);
}

test('a folder imports only lower folders', () => {
  for (const [file, all] of imports) {
    for (const imported of all) {
      assert.ok(level(imported) <= level(file), `src/${file} imports src/${imported}, whose folder is higher`);
    }
  }
});

test('no files import each other in a circle', () => {
  const done = new Set<string>();
  const visit = (file: string, above: string[]): void => {
    assert.ok(!above.includes(file), `these files import each other: ${[...above, file].join(' → ')}`);
    if (!done.has(file)) {
      imports.get(file)?.forEach((imported) => { visit(imported, [...above, file]); });
      done.add(file);
    }
  };
  assert.ok(imports.size > 30 && [...imports.values()].flat().length > 100);
  [...imports.keys()].forEach((file) => { visit(file, []); });
});
