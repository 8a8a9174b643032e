import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { Refresher } from '../../src/panel/refresher';

/** Lets code that waits for promises continue while timers are faked. */
async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) {
    await Promise.resolve();
  }
}

test('slow refreshes are rare', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  const finish: (() => void)[] = [];
  const refresh = mock.fn(() => new Promise<void>((done) => { finish.push(done); }));
  const r = new Refresher(refresh);
  const pass = async (ms: number): Promise<void> => {
    t.mock.timers.tick(ms);
    await settle();
  };

  r.need();
  await pass(0);
  assert.equal(refresh.mock.callCount(), 1);
  r.need();
  await pass(400);
  assert.equal(refresh.mock.callCount(), 1, 'one at a time');
  finish.shift()?.();
  await settle();
  await pass(3999);
  assert.equal(refresh.mock.callCount(), 1, 'it took 400 ms, so the next one is 4 s later');
  await pass(1);
  assert.equal(refresh.mock.callCount(), 2);
  finish.shift()?.();
  await settle();
  await pass(60_000);
  assert.equal(refresh.mock.callCount(), 2, 'no changes');

  r.need();
  await pass(0);
  finish.shift()?.();
  await settle();
  r.need();
  r.needNow();
  await pass(0);
  assert.equal(refresh.mock.callCount(), 4, 'the user waits');
  r.needNow();
  finish.shift()?.();
  await settle();
  await pass(0);
  assert.equal(refresh.mock.callCount(), 5, 'and waited meanwhile');
  finish.shift()?.();
  await settle();

  r.need();
  r.rest();
  await pass(60_000);
  assert.equal(refresh.mock.callCount(), 5);
  r.dispose();
  r.needNow();
  await pass(60_000);
  assert.equal(refresh.mock.callCount(), 5);
});

test('a failed refresh is reported, and the next one follows', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  const errors: unknown[] = [];
  let fail = true;
  let done = 0;
  const r = new Refresher(() => {
    if (fail) {
      return Promise.reject(new Error('gone'));
    }
    done++;
    return Promise.resolve();
  }, { onError: (error) => errors.push(error) });
  r.need();
  t.mock.timers.tick(0);
  await settle();
  assert.equal(errors.length, 1);
  fail = false;
  r.need();
  t.mock.timers.tick(1000);
  await settle();
  assert.equal(done, 1);
});
