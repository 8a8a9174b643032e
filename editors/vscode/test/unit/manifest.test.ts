import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

interface Command {
  command: string;
}

interface Manifest {
  contributes: {
    commands: Command[];
    menus: Record<string, Command[]>;
    keybindings: Command[];
    configuration: { properties: Record<string, { scope?: string; description?: string; markdownDescription?: string }> };
  };
  capabilities: { untrustedWorkspaces: { restrictedConfigurations: string[] } };
}

const { contributes, capabilities } = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest;
const commands = contributes.commands.map((c) => c.command);

const source = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => readFileSync(path.join('src', name), 'utf8'))
  .join('\n');

test('each command is declared once, and the source contains it', () => {
  assert.deepEqual(commands, [...new Set(commands)]);
  // Commands of the list of runs are registered by the second half of their names.
  const known = (id: string): boolean => source.includes(`'${id}'`) || registeredInTree(id);
  assert.deepEqual(commands.filter((id) => !known(id)), []);
});

function registeredInTree(id: string): boolean {
  const name = id.replace('waza.runs.', '');
  return id.startsWith('waza.runs.') && new RegExp(`\\b(?:on\\w*|command|register)\\('${name}'|^\\s*${name}:`, 'm').test(source);
}

test('menus and keys name existing commands', () => {
  const used = [...Object.values(contributes.menus).flat(), ...contributes.keybindings].map((c) => c.command);
  assert.deepEqual(used.filter((id) => !commands.includes(id)), []);
});

test('each setting is described and read', () => {
  for (const [name, setting] of Object.entries(contributes.configuration.properties)) {
    assert.ok(setting.description ?? setting.markdownDescription, name);
    const key = name.replace(/^waza\./, '');
    assert.ok(key === 'trace.server' || source.includes(`'${key}'`), `nothing reads ${name}`); // the language client reads that one
  }
});

test('an untrusted workspace cannot set which program starts', () => {
  const { restrictedConfigurations } = capabilities.untrustedWorkspaces;
  assert.deepEqual(restrictedConfigurations, ['waza.path', 'waza.args', 'waza.env']);
});
