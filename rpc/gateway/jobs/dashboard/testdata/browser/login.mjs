import assert from 'node:assert/strict';
import { Visit } from './harness.mjs';

const login = 'main.login';

export const scenarios = {
  async 'a link signs in once'(v, w) {
    await v.page.goto(w.link);
    await v.connected();
    assert.equal(v.page.url(), `${w.origin}/#/jobs`, 'the code is not in the address bar');
    const cookies = await v.context.cookies(`${w.origin}/runs/x`);
    assert.equal(cookies.length, 1);
    assert.ok(cookies[0].httpOnly && cookies[0].sameSite === 'Strict' && cookies[0].path === '/runs');
    assert.equal((await v.context.cookies(`${w.origin}/`)).length, 0, 'requests of the page have no cookie');
    await v.shot('jobs-empty');

    const other = await Visit.start(w);
    other.lenient = true;
    await other.page.goto(w.link);
    await other.reads(login, /code is invalid, expired or already used/);
    assert.ok(!other.page.url().includes('code='));
    await other.shot('login-refused');
    assert.deepEqual(other.wrong, []);
    await other.context.close();
    assert.ok(!w.server.err.includes(new URLSearchParams(new URL(w.link).hash.slice(1)).get('code')), 'the code is not logged');
  },

  async 'an access token signs in'(v, w) {
    v.lenient = true;
    await v.page.goto(w.origin);
    await v.reads(login, /waza serve prints a link/);
    await v.shot('login');
    await v.page.fill('#token', 'nonsense');
    await v.page.keyboard.press('Enter');
    await v.reads(login, /the token is invalid/);
    await v.page.fill('#token', (await w.tokens('--ttl', '1h')).access_token);
    await v.page.keyboard.press('Enter');
    await v.connected();
    const run = await w.record('quick');
    const page = await v.page.goto(`${w.origin}/runs/${run}`);
    assert.equal(page.status(), 200);
    await v.page.goBack();
    await v.page.click('text=Sign out');
    await v.reads(login, /session has ended/);
  },

  async 'an expired token is replaced'(v, w) {
    v.lenient = true;
    const t = await w.tokens('--ttl', '1s');
    await new Promise((done) => setTimeout(done, 1500)); // until it expires
    await v.page.addInitScript((t) => sessionStorage.set || (localStorage.setItem('waza.tokens', t), (sessionStorage.set = '1')), JSON.stringify({ access: t.access_token, refresh: t.refresh_token }));
    await v.page.goto(w.origin);
    await v.connected();
    const now = await v.page.evaluate(() => JSON.parse(localStorage.getItem('waza.tokens')));
    assert.notEqual(now.access, t.access_token);

    // A revoked session ends.
    await w.waza('token', 'revoke', JSON.parse(Buffer.from(t.access_token.split('.')[1], 'base64url')).jti.split('-')[0]);
    await v.page.reload();
    await v.reads(login, /not signed in|session has ended/);
  },

  async 'six tabs'(v, w) {
    v.lenient = true;
    await v.signIn();
    for (let i = 0; i < 4; i++) {
      const tab = await v.tab();
      await tab.goto(w.origin);
      await v.connected(tab);
    }
    const first = v.page;
    v.page = await v.tab();
    await v.page.goto(w.origin);
    await v.reads('.banner', /five connections/);
    await v.shot('crowded');
    await first.close();
    await v.page.click('.banner button');
    await v.connected();
    await v.page.waitForSelector('.banner', { state: 'detached' });
  },

  async 'pages of runs want a session'(v, w) {
    v.lenient = true;
    const run = await w.record('quick');
    assert.equal((await v.page.goto(`${w.origin}/runs/${run}`)).status(), 401);
    await v.reads('main', /Open the dashboard first/);
    await v.page.goto(w.link);
    await v.connected();
    assert.equal((await v.page.goto(`${w.origin}/runs/${run}`)).status(), 200);
    assert.equal((await v.page.goto(`${w.origin}/runs/20200101-000000.000-aaaaaaaaaa`)).status(), 404);
    assert.equal((await v.page.goto(`${w.origin}/compare?run=${run}`)).status(), 400);
    // The API does not accept the cookie.
    const api = await v.context.request.get(`${w.origin}/api/jobs`);
    assert.equal(api.status(), 401);
  },
};
