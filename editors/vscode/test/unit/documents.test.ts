import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { test } from 'node:test';

interface Manifest {
  icon: string;
  contributes: {
    commands: { command: string; title: string }[];
    configuration: { properties: Record<string, { default: unknown; scope?: string }> };
    menus: Record<string, { command: string; when?: string }[]>;
    walkthroughs: { id: string; steps: { id: string; description: string; media: { svg?: string; markdown?: string }; completionEvents: string[] }[] }[];
    viewsWelcome: { contents: string }[];
  };
}

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest;
const readme = readFileSync('README.md', 'utf8');
const declared = new Set(manifest.contributes.commands.map((c) => c.command));

test('the README describes every setting, with its default', () => {
  const rows = [...readme.matchAll(/^\| `(waza\.[^`]+)` \| (.*?) \|/gm)].map(([, name, value]) => [name, value]);
  const want = Object.entries(manifest.contributes.configuration.properties).map(([name, p]) => [name, `\`${JSON.stringify(p.default)}\``]);
  assert.deepEqual(rows.sort(), want.sort());
});

test('pictures of the README exist and are small', () => {
  const pictures = [...readme.matchAll(/!\[[^\]]+\]\(([^)]+)\)/g)].map(([, file]) => file ?? '');
  assert.ok(pictures.length > 0);
  let total = 0;
  for (const file of pictures) {
    assert.ok(existsSync(file), file);
    total += statSync(file).size;
  }
  assert.ok(total < 1_500_000, `${total} bytes`);
});

test('steps of the walkthrough have their media, and name existing commands', () => {
  const [start] = manifest.contributes.walkthroughs;
  assert.equal(start?.id, 'start');
  for (const step of start.steps) {
    assert.ok(existsSync(step.media.svg ?? step.media.markdown ?? ''), step.id);
    const named = [...step.description.matchAll(/command:(waza\.[\w.]+)/g), ...step.completionEvents.join('\n').matchAll(/onCommand:(waza\.[\w.]+)/g)];
    for (const [, command] of named) {
      assert.ok(command !== undefined && declared.has(command), `${step.id}: ${command}`);
    }
  }
});

test('menus name existing commands', () => {
  for (const [menu, items] of Object.entries(manifest.contributes.menus)) {
    for (const { command } of items) {
      assert.ok(!command.startsWith('waza.') || declared.has(command), `${menu}: ${command}`);
    }
  }
});

test('the icon is a square of 256', () => {
  const png = readFileSync(manifest.icon);
  assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [256, 256]);
});
