// Opens HTML reports in Chromium and uses them like a person.
//
//   node report.mjs MODULES CHROMIUM REPORTS SCREENSHOTS
//
// MODULES is a directory with playwright-core below node_modules, REPORTS a directory
// with the reports that browser_test.go writes. Each scenario prints one line of
// JSON, {name, error, note}. It also fails if the page logs an error, requests anything
// but its own file, or opens a dialog.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, chromium, reports, screenshots] = process.argv.slice(2);
const { chromium: playwright } = createRequire(path.join(modules, 'package.json'))('playwright-core');

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const browser = await playwright.launch({ executablePath: chromium, args: FLAGS });

// A Visit is a separate window and the forbidden events in it.
class Visit {
  constructor(context) {
    this.context = context;
    this.wrong = [];
  }

  static async create(options = {}) {
    const visit = new Visit(
      await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: 'light', ...options }),
    );
    visit.page = await visit.context.newPage();
    const { page, wrong } = visit;
    page.setDefaultTimeout(20_000);
    page.on('console', (m) => {
      if (m.type() === 'error' || m.type() === 'warning') wrong.push(`console: ${m.text()}`);
    });
    page.on('pageerror', (e) => wrong.push(`error: ${e.message}`));
    page.on('dialog', (d) => {
      wrong.push(`dialog: ${d.message()}`);
      d.dismiss();
    });
    page.on('request', (r) => {
      if (!r.url().startsWith('file:') && !r.url().startsWith('data:image/svg+xml'))
        wrong.push(`request: ${r.url().slice(0, 80)}`);
    });
    page.on('popup', (p) => wrong.push(`popup: ${p.url()}`));
    return visit;
  }

  async open(file, hash = '') {
    await this.page.goto('about:blank'); // otherwise another address of the same file only moves within it
    await this.page.goto(pathToFileURL(path.join(reports, file)).href + hash);
    await this.page.waitForSelector('#table tbody tr');
  }

  // shot leaves a picture of the page, and its words for .ci/pictures.
  async shot(name) {
    await this.page.screenshot({ path: path.join(screenshots, `${name}.png`), animations: 'disabled' });
    writeFileSync(path.join(screenshots, `${name}.txt`), await this.page.locator('body').innerText());
  }

  // ids lists the tasks of the table.
  ids() {
    return this.page.$$eval('#table .task .id', (list) => list.map((e) => e.textContent));
  }

  text(selector) {
    return this.page.innerText(selector);
  }

  filter(key) {
    return this.page.click(`[data-filter="${key}"]`);
  }

  // trial waits until the page shows the transcript of a trial, and returns its heading.
  async trial() {
    await this.page.waitForSelector('#viewer[open] .body');
    return (await this.text('#viewer-title')).replace(/\s+/g, ' ').trim();
  }

  // openCalls opens all tool calls and waits for their content.
  async openCalls() {
    await this.page.keyboard.press('e');
    await this.page.waitForFunction(() =>
      [...document.querySelectorAll('.transcript details')].every((d) => d.open && d.childElementCount > 1),
    );
  }

  focused() {
    return this.page.evaluate(
      () => document.activeElement.id || document.activeElement.dataset.trialRow || document.activeElement.tagName,
    );
  }
}

const scenarios = {
  async 'shows the suite and its settings'(v) {
    await v.open('demo.html');
    assert.equal(await v.text('#suite'), 'code-explainer');
    assert.match(await v.text('#facts'), /Completed.*command.*demo-1/s);
    const figures = await v.text('.figures');
    for (const want of [
      /Tasks passed\s+33\s%\s+2 of 6/,
      /Mean score\s+0\.\d\d/,
      /Flaky tasks\s+2/,
      /Tokens\s+\d+k/,
      /Cost\s+\$0\.\d+/,
    ])
      assert.match(figures, want);
    assert.match(await v.text('#notes'), /Under their threshold: task_completion/);
    const measures = await v.text('#measures');
    for (const want of [
      'Metrics',
      'tells_complexity',
      'Groups',
      'With skills and without',
      'Trigger tests of explainer',
      'F1',
    ])
      assert.ok(measures.includes(want), want);
    assert.equal((await v.ids()).length, 7);
    assert.equal(await v.page.locator('.dots').count(), 7);
    await v.shot('light');
  },

  async filters(v) {
    await v.open('demo.html');
    const listed = async (key) => {
      await v.filter(key);
      return (await v.ids()).sort();
    };
    assert.deepEqual(await listed('failed'), ['explain-complexity', 'repair', 'story', 'think']);
    assert.equal(await v.page.getAttribute('[data-filter="failed"]', 'aria-pressed'), 'true');
    assert.deepEqual(await listed('flaky'), ['explain-complexity', 'repair']);
    assert.deepEqual(await listed('errors'), ['explain-network', 'no-server']);
    assert.equal((await listed('all')).length, 7);
    assert.equal(await v.page.locator('[data-filter="changed"]').count(), 0, 'nothing to compare with');
    await v.page.click('#roles button:has-text("Trigger tests")');
    assert.equal((await v.ids()).length, 3);
    await v.page.click('#roles button:has-text("Without skills")');
    assert.ok((await v.ids()).every((id) => id.endsWith('#baseline')));
  },

  async 'searches names, tags and reasons'(v) {
    await v.open('demo.html');
    const found = async (text, want) => {
      await v.page.fill('#search', text);
      await v.page.waitForFunction(
        (ids) =>
          [...document.querySelectorAll('#table .task .id')]
            .map((e) => e.textContent)
            .sort()
            .join() === ids,
        want.join(),
      );
    };
    await found('REPAIR sorting', ['repair']);
    await found('easy', ['explain', 'explain-network']);
    await found('model server', ['explain-network', 'no-server']);
    await found('no such thing at all', []);
    assert.ok(await v.page.isVisible('#empty'));
  },

  async 'sorts by every column'(v) {
    await v.open('demo.html');
    const first = await v.ids();
    const columns = await v.page.$$eval('#table > thead button', (list) => list.map((b) => b.dataset.sort));
    assert.deepEqual(columns, ['verdict', 'task', 'rate', 'shrunken', 'trials', 'score', 'time', 'tokens', 'cost']);
    const cells = async (key) =>
      v.page.$$eval('#table .task', (rows, at) => rows.map((r) => r.cells[at].innerText.trim()), columns.indexOf(key));
    const number = (text) =>
      /^\d/.test(text.replace('$', ''))
        ? parseFloat(text.replace('$', '')) * (/k/.test(text) ? 1000 : / s/.test(text) ? 1000 : 1)
        : null;
    for (const key of columns) {
      const seen = [];
      for (const way of [0, 1]) {
        await v.page.click(`[data-sort="${key}"]`);
        seen.push(await v.page.getAttribute(`#table th:has([data-sort="${key}"])`, 'aria-sort'));
        if (!['rate', 'shrunken', 'score', 'tokens', 'cost', 'time'].includes(key)) continue;
        const values = (await cells(key)).map(number);
        const sure = values.filter((x) => x !== null);
        const down = seen[way] === 'descending';
        assert.deepEqual(
          sure,
          [...sure].sort((a, b) => (down ? b - a : a - b)),
          `${key} ${seen[way]}`,
        );
        assert.ok(values.indexOf(null) === -1 || values.indexOf(null) >= sure.length, 'unknown values come last');
      }
      assert.deepEqual([...seen].sort(), ['ascending', 'descending']);
      await v.page.click(`[data-sort="${key}"]`);
      assert.deepEqual(await v.ids(), first, 'a third click gives the order of the suite');
    }
    await v.page.click('[data-sort="task"]');
    assert.deepEqual(await v.ids(), [...first].sort());
  },

  async 'a task opens to its trials'(v) {
    await v.open('demo.html');
    await v.page.click('#table .task:has-text("explain-network") td.verdicts');
    const inner = '#table .inner';
    assert.equal(await v.page.locator(`${inner} .trial`).count(), 12);
    assert.match(await v.text(`${inner} .reasons`), /in 3 of 12 trials.*connection refused/s);
    await v.page.click(`${inner} .choices button:has-text("Error")`);
    assert.equal(await v.page.locator(`${inner} .trial`).count(), 3);
    assert.equal(await v.page.getAttribute('.row:has-text("explain-network")', 'aria-expanded'), 'true');
    await v.page.click('.row:has-text("explain-network")');
    assert.equal(await v.page.locator(inner).count(), 0);
  },

  async 'a trial shows transcript, graders and files'(v) {
    await v.open('demo.html');
    await v.page.click('.row:has-text("repair")');
    await v.page.click('[data-trial-row] >> nth=2');
    assert.equal(await v.trial(), 'Trial 3 Failed');
    const body = await v.text('#viewer .body');
    for (const want of [
      'Prompt',
      'Output',
      'Transcript',
      'Graders',
      'Files',
      'settings.ini equals expected.ini',
      '- expected "speed = fast\\n"',
      '+ got      "speed = slow\\n"',
      'weight 2',
      '353 written',
    ]) {
      assert.ok(body.includes(want), want);
    }
    const files = await v.text('.files');
    for (const want of [/changed\s+sort\.py/, /added\s+CHANGES\.md/, /cache\.bin.*not a text/, /removed\s+NOTES\.md/])
      assert.match(files, want);
    assert.match(
      await v.text('.files .diff >> nth=0'),
      /^-        for j in range\(len\(values\) - 1\):\n\+        for j in range\(len\(values\) - 1 - i\):$/m,
    );
    const call = v.page.locator('.transcript details:has-text("bash")');
    assert.equal(await call.locator('pre').count(), 0, 'a tool call is closed at first');
    await call.locator('summary').click();
    await call.locator('pre').nth(1).waitFor();
    assert.match(await call.innerText(), /"command": "python3 -m pytest -q && git diff --stat"[^]*"exit_code": 0/);
    assert.ok((await call.locator('.key').count()) > 3, 'JSON is coloured');
    assert.equal(await v.page.locator('.transcript .e-skill').count(), 1);
    await v.shot('transcript');
    await v.page.click('[aria-label="Next trial"]');
    await v.page.waitForSelector('#viewer[data-shown]:has-text("Trial 4")');
    await v.page.click('#viewer [aria-label="Close"]');
    assert.equal(await v.page.locator('#viewer[open]').count(), 0);
  },

  async 'long transcripts and texts are folded'(v) {
    await v.open('demo.html', '#task/story/trial/2');
    assert.equal(await v.trial(), 'Trial 2 Failed');
    const output = v.page.locator('[data-part="Output"]');
    assert.ok(!(await output.innerText()).includes('60. Once, there'));
    await output.locator('button').click();
    assert.ok((await output.innerText()).includes('60. Once, there'));
    await v.openCalls();
    assert.equal(
      await v.page.locator('.transcript details[open]').count(),
      await v.page.locator('.transcript details').count(),
    );
  },

  async 'an error is shown as an error'(v) {
    await v.open('demo.html', '#task/no-server/trial/1');
    assert.equal(await v.trial(), 'Trial 1 Error');
    assert.match(await v.text('#viewer .why'), /connection refused/);
    await v.open('demo.html', '#task/think/trial/1');
    assert.equal(await v.trial(), 'Trial 1 Timed out');
    assert.match(await v.text('.transcript'), /think about this for a while/);
  },

  async 'the keyboard reaches everything'(v) {
    await v.open('demo.html');
    const press = (...keys) => keys.reduce((p, k) => p.then(() => v.page.keyboard.press(k)), Promise.resolve());
    await press('j', 'j');
    assert.equal(await v.focused(), 'task-1'.replace('1', await v.page.getAttribute('.row >> nth=1', 'data-task')));
    assert.notEqual(
      await v.page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle),
      'none',
      'the focus is seen',
    );
    await press('Enter', 'ArrowDown');
    const first = await v.focused();
    assert.match(first, /^\d+$/);
    await press('Enter');
    assert.match(await v.trial(), /^Trial 1 /);
    await press('j');
    await v.page.waitForSelector('#viewer:has-text("Trial 2")');
    await press('Escape');
    assert.equal(await v.page.locator('#viewer[open]').count(), 0);
    assert.equal(Number(await v.focused()), Number(first) + 1, 'the focus is back in the list');
    await press('k', 'k', 'ArrowLeft');
    assert.equal(await v.page.locator('#table .inner').count(), 0);
    await press('f');
    assert.equal(await v.page.getAttribute('[data-filter="failed"]', 'aria-pressed'), 'true');
    await press('/');
    assert.equal(await v.focused(), 'search');
    await v.page.keyboard.type('jf?');
    await v.page.waitForSelector('#empty:visible');
    await press('Escape');
    await v.page.waitForSelector('#table .task');
    await press('Escape', '?');
    assert.ok(await v.page.isVisible('#keys'));
    await press('Escape');
    assert.ok(!(await v.page.isVisible('#keys')));
  },

  async 'an address opens a trial'(v) {
    await v.open('demo.html', '#task/repair/trial/6');
    assert.match(await v.trial(), /^Trial 6 /);
    await v.page.keyboard.press('Escape');
    assert.match(v.page.url(), /#task\/repair$/);
    assert.equal(await v.page.getAttribute('.row:has-text("repair")', 'aria-expanded'), 'true');
    await v.page.evaluate(() => {
      location.hash = '#task/explain/trial/2';
    });
    assert.match(await v.trial(), /^Trial 2 /);
    for (const hash of ['#task/nobody', '#task/repair/trial/99', '#task/%E0%A4%A', '#tasks', '#']) {
      await v.open('demo.html', hash);
      assert.equal(await v.page.locator('#viewer[open]').count(), 0, hash);
    }
    await v.open('demo.html');
    await v.filter('errors');
    await v.page.evaluate(() => {
      location.hash = '#task/story';
    });
    await v.page.waitForSelector('.row[aria-expanded="true"]:has-text("story")');
  },

  async 'going back closes a trial'(v) {
    await v.open('demo.html', '#task/repair');
    await v.page.click('[data-trial-row] >> nth=0');
    assert.match(await v.trial(), /^Trial 1 /);
    await v.page.goBack();
    await v.page.waitForSelector('#viewer[open]', { state: 'detached' });
    assert.equal((await v.ids()).length, 7);
  },

  async 'light and dark'(v) {
    const paper = () => v.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const bright = async () =>
      (await paper())
        .match(/\d+/g)
        .slice(0, 3)
        .map(Number)
        .reduce((a, b) => a + b) > 380;
    await v.open('demo.html');
    assert.ok(await bright());
    await v.page.emulateMedia({ colorScheme: 'dark' });
    assert.ok(!(await bright()), 'as the system has it');
    await v.page.click('#theme');
    assert.ok(await bright(), 'light was chosen');
    await v.page.click('#theme');
    await v.page.emulateMedia({ colorScheme: 'light' });
    assert.ok(!(await bright()), 'dark was chosen');
    await v.open('demo.html', '#task/repair');
    assert.ok(!(await bright()), 'the choice is remembered');
    assert.match(await v.page.getAttribute('#theme', 'aria-label'), /dark/);
    await v.shot('dark');
  },

  async 'texts are readable in both themes'(v) {
    for (const colorScheme of ['light', 'dark']) {
      await v.page.emulateMedia({ colorScheme });
      for (const [file, hash] of [
        ['against.html', '#task/repair/trial/3'],
        ['states.html', '#task/prime%5Bm-2%5D/trial/1'],
      ]) {
        await v.open(file, hash);
        await v.trial();
        await v.openCalls();
        const poor = await v.page.evaluate(contrasts);
        assert.deepEqual(poor, [], `${file}, ${colorScheme}`);
      }
    }
  },

  async 'changes since an earlier run'(v) {
    await v.open('against.html');
    assert.match(await v.text('#notes'), /Compared with run .* \(demo-0\): 1 task has other results/);
    const compared = (await v.page.locator('.compared').allInnerTexts()).join('\n');
    assert.match(compared, /B against A: 0 regressed, 0 improved/);
    assert.match(compared, /Pass rate, these tasks/);
    assert.match(compared, /Verdict: on tasks like these, it is undecided whether B differs from A/);
    await v.filter('changed');
    assert.deepEqual(await v.ids(), ['explain']);
    assert.match(await v.text('#table .was'), /Failed\s*\+33/);
    assert.equal(await v.page.locator('.dots .changed').count(), 4);
    await v.page.click('.row:has-text("explain")');
    assert.equal(await v.page.locator('.trial:has-text("was failed")').count(), 4);
  },

  async charts(v) {
    await v.open('demo.html');
    assert.deepEqual(await v.page.$$eval('#histograms button', (list) => list.map((b) => b.textContent)), [
      'Score',
      'Time per trial',
      'Tokens per trial',
      'Cost per trial',
    ]);
    for (const chart of await v.page.locator('.histogram').all()) {
      assert.ok((await chart.locator('text').count()) >= 4, 'an axis');
      assert.match(await chart.getAttribute('aria-label'), /of \d+ trials, up to/);
    }
    await v.page.hover('.histogram [data-tip] >> nth=0');
    assert.match(await v.text('#tip'), /passed, \d+ not/);
    await v.page.click('#histograms button:has-text("Time")');
    assert.ok((await v.page.locator('.strip .dot').count()) > 60);
    await v.shot('charts');
    await v.page.click('.strip [data-tip*="story, trial 7"]', { force: true });
    assert.match(await v.trial(), /^Trial \d+ Failed/);
    await v.page.keyboard.press('Escape');
    await v.filter('failed');
    assert.match(await v.text('#distributions-about'), /in 4 tasks/);
  },

  async 'texts of agents have no effect'(v) {
    await v.open('hostile.html');
    const census = () =>
      v.page.evaluate(() =>
        ['script', 'style', 'img', 'iframe', 'link', 'meta', 'object', 'embed', 'form']
          .map((n) => `${n} ${document.querySelectorAll(n).length}`)
          .join(', '),
      );
    const before = await census();
    assert.match(before, /^script 2, style 1, img 0, iframe 0, link 1, meta 6, object 0, embed 0, form 0$/);
    for (const id of await v.page.$$eval('[data-task]', (list) => list.map((b) => b.dataset.task))) {
      await v.page.click(`#task-${id}`);
      for (const num of ['1', '2']) {
        await v.page.click(`#body-${id} [data-trial-row] >> text="${num}"`);
        await v.trial();
        await v.openCalls();
        for (const more of await v.page.locator('#viewer summary').all()) await more.hover();
        if (id === '0' && num === '1') {
          const text = await v.text('#viewer');
          for (const want of [
            "<script>alert('output')</script>",
            '<iframe src="https://example.invalid/frame"></iframe>',
            "</script><script>alert('key')</script>",
            '"__proto__": {',
            "<b onmouseover=alert('skill')>",
            '<link rel=stylesheet',
            '&lt;b&gt;',
          ]) {
            assert.ok(text.includes(want), want);
          }
          await v.shot('hostile');
        }
        await v.page.keyboard.press('Escape');
      }
    }
    assert.equal(await census(), before, 'no element was made of it');
    assert.equal(await v.page.evaluate(() => ({}).polluted), undefined);
    assert.equal(await v.page.title(), "<script>alert('suite')</script> · waza");
    const hash = await v.page.evaluate(() => location.hash);
    await v.open('hostile.html', hash);
    assert.equal(await v.page.locator('.row[aria-expanded="true"]').count(), 1, 'its address opens it');
  },

  async 'no text keeps the page busy'(v) {
    await v.open('busy.html', '#task/busy/trial/1');
    assert.match(await v.trial(), /^Trial 1 Failed/);
    assert.deepEqual(await v.page.$$eval('.checks .diff span', (list) => list.map((e) => e.textContent)), [
      '- expected one',
      '+ got      two',
    ]);
    assert.ok((await v.text('#viewer')).includes(': expected ": expected "'));
  },

  async 'the policy blocks everything else'(v) {
    await v.open('demo.html');
    const ran = await v.page.evaluate(async () => {
      const blocked = [];
      document.addEventListener('securitypolicyviolation', (e) => blocked.push(e.effectiveDirective));
      const script = document.createElement('script');
      script.textContent = 'window.ran = true';
      document.body.append(script);
      const image = document.createElement('img');
      image.src = 'https://example.invalid/x.png';
      document.body.append(image);
      document.body.setAttribute('style', 'display: none');
      await fetch('https://example.invalid/').catch(() => {});
      await new Promise((done) => {
        setTimeout(done, 50);
      });
      return { ran: window.ran, shown: getComputedStyle(document.body).display, blocked: blocked.sort() };
    });
    assert.deepEqual(ran, {
      ran: undefined,
      shown: 'block',
      blocked: ['connect-src', 'img-src', 'script-src-elem', 'style-src-attr'],
    });
    v.wrong = v.wrong.filter((w) => !/Content Security Policy|example\.invalid/.test(w)); // they were attempted and blocked
  },

  async 'a narrow window'(v) {
    await v.page.setViewportSize({ width: 390, height: 844 });
    const wide = () =>
      v.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    await v.open('against.html', '#task/repair');
    assert.ok((await wide()) <= 0, `${await wide()} pixels too wide`);
    await v.shot('narrow');
    await v.page.click('[data-trial-row] >> nth=2');
    await v.trial();
    await v.openCalls();
    assert.ok(
      await v.page.evaluate(() => {
        const s = document.getElementById('viewer');
        return s.scrollWidth <= s.clientWidth;
      }),
    );
    await v.shot('narrow-transcript');
  },

  async paper(v) {
    await v.open('many.html');
    await v.page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    await v.page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    assert.equal(await v.page.locator('#table .task').count(), 200, 'all tasks, not a page of them');
    assert.ok(!(await v.page.isVisible('#search')));
    const pdf = await v.page.pdf({ format: 'A4' });
    assert.ok(pdf.length > 20_000);
  },

  async 'a screen reader can navigate'(v) {
    await v.open('demo.html');
    const tree = await v.page.locator('body').ariaSnapshot();
    for (const want of [
      'heading "code-explainer" [level=1]',
      'heading "Tasks" [level=2]',
      'group "Filter"',
      'button "Failed 4"',
      'searchbox "Search the tasks"',
      'columnheader "Pass rate"',
      'button "repair"',
      'img "8 passed, 4 failed"',
    ]) {
      assert.ok(
        tree.includes(want) || (want.startsWith('img') && /img "4 failed, 8 passed"/.test(tree)),
        `${want} in\n${tree}`,
      );
    }
    await v.filter('failed');
    assert.equal(await v.text('#announcement'), '4 tasks listed');
    const nameless = await v.page.$$eval(
      'button',
      (list) => list.filter((b) => !b.textContent.trim() && !b.getAttribute('aria-label')).length,
    );
    assert.equal(nameless, 0);
    await v.open('demo.html', '#task/repair/trial/3');
    await v.trial();
    assert.match(await v.page.locator('#viewer').ariaSnapshot(), /dialog "Trial 3 Failed"/);
  },

  // Prints the time from the navigation until the table is painted, and the time of a filter; the
  // best of three, because the machine may be busy.
  async 'ten thousand trials'(v) {
    const notes = [];
    for (const file of ['many.html', 'long.html']) {
      const times = [];
      for (let i = 0; i < 3; i++) {
        await v.open(file);
        times.push(await v.page.evaluate(firstUse));
      }
      const best = times.sort((a, b) => a.shown + a.filtered - b.shown - b.filtered)[0];
      notes.push(`${file}: table after ${best.shown} ms, a filter takes ${best.filtered} ms`);
    }
    await v.open('many.html');
    assert.match(await v.text('.legend'), /of 10,000 trials/);
    await v.shot('many');
    await v.open('many.html', '#task/question-200/trial/50');
    assert.match(await v.trial(), /^Trial 50 /);
    assert.match(await v.text('#viewer .body'), /forty-two/);
    await v.page.keyboard.press('Escape');
    assert.match(await v.text('#pager'), /101–200 of 200/);
    await v.open('long.html');
    for (const want of ['1–100 of 10,000', '101–200 of 10,000']) {
      assert.match(await v.text('#pager'), new RegExp(want));
      await v.page.keyboard.press('p');
    }
    await v.page.fill('#search', 'case-09999');
    await v.page.waitForFunction(() => document.querySelectorAll('#table .task').length === 1);
    return notes.join('; ');
  },

  async 'trials without room are omitted'(v) {
    await v.open('small.html', '#task/question-150/trial/50');
    await v.trial();
    assert.match(await v.text('#viewer .body'), /would be too large.*waza runs show/);
    await v.open('small.html');
    await v.filter('failed');
    const task = await v.page.getAttribute('[data-task] >> nth=0', 'data-task');
    await v.page.click(`#task-${task}`);
    await v.page.click('.inner .choices button:has-text("Failed")');
    await v.page.click('[data-trial-row] >> nth=0');
    await v.trial();
    assert.match(await v.text('#viewer .body'), /more than I can do/, 'those that failed come first');
  },
  async 'a report that the built program wrote'(v) {
    await v.open('built.html');
    assert.equal(await v.text('#suite'), 'code-explainer');
    await v.filter('failed');
    await v.page.click('.row >> nth=0');
    await v.page.click('[data-trial-row] >> nth=0');
    assert.match(await v.trial(), /^Trial 1 /);
  },

  async 'messages and the clients that took them'(v) {
    await v.open('routing.html');
    const blocks = await v.page.$$eval('#measures .block', (list) =>
      list.map((b) => ({
        title: b.querySelector('h2').textContent,
        about: (b.querySelector('p') || {}).textContent,
        rows: [...b.querySelectorAll('tr')].map((r) => [...r.cells].map((c) => c.textContent).join(' ')),
      })),
    );
    const [routing, confusion, misroutes] = ['Routing', 'Confusion matrix', 'Misroutes'].map((t) =>
      blocks.find((b) => b.title === t),
    );
    assert.match(routing.about, /^Over 20 tasks: accuracy 85.%, 62–97.%; 2 trials rerouted\.$/);
    assert.deepEqual(routing.rows, [
      'Client Expected Took Right Precision Recall F1',
      'calendar 4 4 4 1.00 1.00 1.00',
      'home 3 3 2 0.67 0.67 0.67',
      'music 5 4 4 1.00 0.80 0.89',
      'notebook 6 5 5 1.00 0.83 0.91',
      'all 18 16 15 0.94 0.83 0.88',
    ]);
    assert.deepEqual(confusion.rows, [
      'Expected calendar home music notebook nobody',
      'calendar 4 · · · ·',
      'home · 2 · · ·',
      'music · · 3 · 1',
      'notebook · 1 · 5 ·',
      'home + music · · 1 · ·',
      'nobody · · · · 3',
    ]);
    assert.equal(misroutes.rows.length, 4);
    assert.match(misroutes.rows[3], /^evening 1 home \+ music music – Its description/);
    await v.shot('routing');
    await v.page.click('#measures a:has-text("evening")');
    await v.page.click('[data-trial-row] >> nth=0');
    await v.trial();
    assert.match(await v.text('#viewer .body'), /Words chose music/);
  },

  async 'rare features of runs'(v) {
    await v.open('states.html');
    const notes = await v.text('#notes');
    for (const want of [
      'could not continue: the disk is full',
      'The record is damaged: the journal is damaged at line 12',
      '3 trials were saved',
      '2 trials were reused from earlier runs',
      'Judge j-1 prefers the first of two outputs, whichever it is: in 9 of 10 comparisons, and the second in 1 (p 0.021).',
    ]) {
      assert.ok(notes.includes(want), `${want} in ${notes}`);
    }
    const measures = await v.text('#measures');
    for (const want of [
      'Over 1 task, each by itself: 0 improved',
      'On these tasks, it is undecided whether the skills help (p 0.300); 12 more trials of each task would show such a difference in 4 of 5 runs.',
      'An interval that excludes 0 beside "undecided" is no contradiction',
    ]) {
      assert.ok(measures.includes(want), `${want} in ${measures}`);
    }
    const marks = await v.page.$$eval('#table .verdicts', (list) =>
      [...new Set(list.map((c) => c.innerText.replace(/\s*flaky/, '').trim()))].sort(),
    );
    assert.deepEqual(marks, [
      'Cancelled',
      'Error',
      'Failed',
      'Not finished',
      'Passed',
      'Skipped',
      'Timed out',
      'To review',
    ]);
    assert.equal(
      await v.page.getAttribute('.task:has-text("half done") .shares', 'aria-label'),
      '60 trials: 60 passed, 40 not finished',
    );
    const shapes = await v.page.$$eval('.legend .mark path', (list) => list.map((p) => p.getAttribute('d')));
    assert.equal(new Set(shapes).size, shapes.length, 'each verdict has a shape of its own');
    assert.match(await v.text('.block.matrix'), /Matrix[^]*m-1\s+m-2[^]*prime[^]*100\s%\s+67\s%/);
    await v.page.click('tr:has-text("prime") a >> nth=1');
    await v.page.waitForSelector('#table .inner');
    const inner = await v.text('#table .inner');
    for (const want of [
      /Model m-2/,
      /temperature 0\.5/,
      /Decided after 2 of 5 trials: passed at 95 % confidence/,
      /cached/,
    ])
      assert.match(inner, want);
    await v.page.click('[data-trial-row] >> nth=0');
    await v.trial();
    assert.match(await v.text('#viewer'), /From earlier-run/);
    await v.page.keyboard.press('Escape');
    for (const id of await v.page.$$eval('[data-task]', (list) => list.map((b) => b.dataset.task))) {
      const button = v.page.locator(`#task-${id}`);
      if ((await button.getAttribute('aria-expanded')) === 'false') await button.click();
    }
    const trials = await v.page.$$eval('[data-trial-row]', (list) => list.map((b) => b.dataset.trialRow));
    for (const at of trials) {
      await v.page.click(`[data-trial-row="${at}"]`);
      await v.page.waitForSelector(`#viewer[data-shown="${await v.page.evaluate('location.hash')}"] .body`);
      await v.page.keyboard.press('Escape');
    }
    await v.shot('states');
  },
};

// firstUse runs in the page. It returns when the table was painted, in milliseconds since
// the navigation, and how long a filter takes.
async function firstUse() {
  const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const names = ['shown', 'first-contentful-paint'];
  while (names.some((name) => performance.getEntriesByName(name).length === 0)) await painted();
  const shown = Math.max(...names.map((name) => performance.getEntriesByName(name)[0].startTime));
  const start = performance.now();
  document.querySelector('[data-filter="errors"]').click();
  await painted();
  return { shown: Math.round(shown), filtered: Math.round(performance.now() - start) };
}

// contrasts runs in the page and lists texts with too little contrast to their
// background.
function contrasts() {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) =>
    [r, g, b]
      .map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
      .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = rgba(getComputedStyle(e).backgroundColor);
      if (colour[3] > 250) return colour;
    }
    return [255, 255, 255, 255];
  };
  const poor = new Set();
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.checkVisibility() || element.closest('.hidden, [disabled], svg, script, noscript')) continue;
    const [a, b] = [light(rgba(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.4)
      poor.add(`${element.tagName}.${element.className} ${ratio.toFixed(2)}: ${element.textContent.slice(0, 30)}`);
  }
  return [...poor];
}

for (const [name, scenario] of Object.entries(scenarios)) {
  const visit = await Visit.create();
  const line = { name };
  try {
    line.note = await scenario(visit);
    assert.deepEqual(visit.wrong, []);
  } catch (error) {
    line.error = `${error.stack || error}`;
    if (visit.wrong.length) line.error += `\n${visit.wrong.join('\n')}`;
    await visit.shot(`failed-${name.replace(/\W+/g, '-')}`).catch(() => {});
  }
  console.log(JSON.stringify(line));
  await visit.context.close();
}
await browser.close();
