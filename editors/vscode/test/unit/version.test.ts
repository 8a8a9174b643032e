import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSupported, parseVersion } from '../../src/daemon/version';

test('output that is not a version of waza is recognised', () => {
  assert.deepEqual(parseVersion('{"version": "v1.2.3", "go": "go1.26"}'), { version: 'v1.2.3' });
  for (const printed of ['', 'waza 1.2.3', '[]', 'null', '{"version": 3}']) {
    assert.equal(parseVersion(printed), undefined, printed);
  }
});

test('a version is compared with the oldest supported one', () => {
  const cases: [version: string, minimum: string, supported: boolean][] = [
    ['v1.2.3', '1.2.3', true],
    ['1.2.4', '1.2.3', true],
    ['v1.10.0', '1.9.9', true],
    ['v1.2.2', '1.2.3', false],
    ['v0.9.12', '1.0.0', false],
    ['v1.2.3-rc.1', '1.2.3', false],
    ['v1.2.4-rc.1', '1.2.3', true],
    ['v1.2.3-rc.1', '1.2.3-rc.1', true],
    ['(devel)', '1.2.3', true],
    ['v0.0.0-20260102030405-0123456789ab+dirty', '1.2.3', true],
  ];
  for (const [version, minimum, supported] of cases) {
    assert.equal(isSupported(version, minimum), supported, `${version} with minimum ${minimum}`);
  }
});
