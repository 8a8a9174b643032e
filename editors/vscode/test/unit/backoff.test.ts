import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Backoff } from '../../src/daemon/backoff';

const options = { firstMs: 500, maxMs: 30_000, healthyMs: 60_000, maxDeaths: 8 };

test('the wait grows each time the daemon dies, until the client gives up', () => {
  const backoff = new Backoff(options);
  const waits = Array.from({ length: 8 }, () => {
    const v = backoff.died(0);
    return v.action === 'restart' ? v.afterMs : v.action;
  });
  assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 'give up']);
});

test('after a healthy life the next wait is short', () => {
  const backoff = new Backoff(options);
  backoff.died(0);
  backoff.died(0);
  assert.deepEqual(backoff.died(60_000), { action: 'restart', afterMs: 500 });
});

test('a start by the user resets the count', () => {
  const backoff = new Backoff({ ...options, maxDeaths: 2 });
  backoff.died(0);
  backoff.reset();
  assert.deepEqual(backoff.died(0), { action: 'restart', afterMs: 500 });
});
