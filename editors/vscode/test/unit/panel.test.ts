import assert from 'node:assert/strict';
import { test } from 'node:test';
import { globOf } from '../../src/model/page';
import { lineOfName } from '../../src/panel/lines';
import { addressOf } from '../../src/panel/messages';
import { documentOf, waitingDocument } from '../../src/panel/page';

const parts = { style: 'p { color: red }', body: '<body>\n<main id="tasks"></main>', script: 'function wazaReport() {}' };
const place = { cspSource: 'https://own.example', script: 'https://own.example/panel.js', style: 'https://own.example/a"b.css' };

test('the policy of the panel runs only scripts with the nonce, and loads nothing else', () => {
  const html = documentOf(parts, place, 'N');
  const policy = /Content-Security-Policy" content="([^"]*)"/.exec(html)?.[1];
  assert.equal(policy, "default-src 'none'; script-src 'nonce-N'; style-src https://own.example 'nonce-N'; img-src data:; base-uri 'none'; form-action 'none'");
  assert.ok(!/unsafe|\*/.test(policy));
  for (const [element] of html.matchAll(/<(?:script|style)\b[^>]*>/g)) {
    assert.match(element, / nonce="N"/);
  }
  assert.equal(html.match(/<body/g)?.length, 1);
  assert.match(html, /href="https:\/\/own\.example\/a&quot;b\.css"/);
  assert.notEqual(documentOf(parts, place), documentOf(parts, place), 'a nonce is used once');
});

test('the waiting document shows its text, escaped', () => {
  assert.match(waitingDocument('a < b'), /<p>a &lt; b<\/p>/);
});

test('addresses of tasks and trials', () => {
  assert.equal(addressOf('a/b [x]', 3), '#task/a%2Fb%20%5Bx%5D/trial/3');
  assert.equal(addressOf('a'), '#task/a');
});

test('where a grader is declared', () => {
  const text = 'graders:\n  - name: one\n    type: text\n  - {type: text, name: "two.x", config: {}}\ntasks:\n  - id: a\n    graders:\n      - type: text\n        name: one # again\n';
  assert.equal(lineOfName(text, 'one', 1), 2);
  assert.equal(lineOfName(text, 'one', 6), 9, 'below the task first');
  assert.equal(lineOfName(text, 'two.x', 6), 4, 'or else above');
  assert.equal(lineOfName(text, 'twoYx', 1), undefined);
  assert.equal(lineOfName(text, 'on', 1), undefined);
});

test('a glob of a single id', () => {
  assert.equal(globOf('a-b_c.d/e'), 'a-b_c.d/e');
  assert.equal(globOf('a[1]*{x}?'), 'a\\[1\\]\\*\\{x\\}\\?');
});
