// Uses the dashboard of a real server in Chromium like a person.
//
//   node --experimental-websocket main.mjs MODULES CHROMIUM WAZA SCREENSHOTS
//
// MODULES is a directory with playwright-core and axe-core below node_modules, and WAZA is
// the program. Each scenario prints one line of JSON: {name, error, note}. A scenario also
// fails when a page logs an error, violates its policy or sends a request to another host.
// With SCENARIO in the environment, only scenarios with a matching name run.

import assert from 'node:assert/strict';
import { scenarios as doors } from './doors.mjs';
import { browser, Visit, World } from './harness.mjs';
import { scenarios as jobs } from './jobs.mjs';
import { scenarios as login } from './login.mjs';
import { scenarios as looks } from './looks.mjs';
import { scenarios as runs } from './runs.mjs';

for (const [name, scenario] of Object.entries({ ...login, ...jobs, ...runs, ...doors, ...looks })) {
  if (!name.includes(process.env.SCENARIO ?? '')) continue;
  const line = { name };
  const world = new World();
  let visit;
  try {
    await world.serve();
    visit = await Visit.start(world, scenario.options);
    line.note = await scenario(visit, world);
    assert.deepEqual(visit.wrong, []);
  } catch (error) {
    line.error = `${error.stack || error}`;
    if (visit?.wrong.length) line.error += `\n${visit.wrong.join('\n')}`;
    line.error += `\n${world.server?.err.split('\n').slice(-15).join('\n')}`;
    await visit?.shot(`failed-${name.replace(/\W+/g, '-')}`).catch(() => {});
  }
  console.log(JSON.stringify(line));
  await visit?.context.close();
  await world.end();
}
await browser.close();
