// The data: the run and its tasks, columns of numbers of all trials, and the
// transcripts, which are unpacked when somebody opens one.

const RUN = DATA.run;
const TASKS = DATA.tasks;
const TRIALS = DATA.trials;
const SUMMARY = RUN.summary || {};

const CACHED = new Set(TRIALS.cached); // trials reused from earlier runs

// Tasks have their index and the range of their trials in the columns.
const TASK_NUMBERS = new Map();
TASKS.reduce((first, task, number) => {
  Object.assign(task, { number, first, role: task.role || 'task', letter: letterOf(task.verdict) });
  task.counts ||= tally(task);
  TASK_NUMBERS.set(task.id, number);
  return first + task.ended;
}, 0);

// tally counts the trials of a task that has not ended.
function tally(task) {
  const counts = { total: task.totalTrials };
  for (const at of trialsOf(task)) {
    const name = COUNTS[TRIALS.verdict[at]];
    if (name) counts[name] = (counts[name] || 0) + 1;
  }
  return counts;
}

// trialsOf lists the indexes of a task's trials.
function trialsOf(task) {
  return Array.from({ length: task.ended }, (_, i) => task.first + i);
}

// taskOf returns the task of a trial.
function taskOf(at) {
  let low = 0;
  let high = TASKS.length - 1;
  while (low < high) {
    // the last task that starts at or before it
    const mid = Math.ceil((low + high) / 2);
    if (TASKS[mid].first <= at) low = mid;
    else high = mid - 1;
  }
  return TASKS[low];
}

// findTrial returns the index of a trial by its task and number, or -1.
const findTrial = (task, num) => trialsOf(task).find((at) => TRIALS.num[at] === num) ?? -1;

// isChanged reports whether a task has a different result than in the earlier run. A new
// task has not changed.
function isChanged(task) {
  const was = task.was;
  if (!was || was.new || !task.verdict) return false;
  return was.verdict !== task.verdict || Math.abs((was.rate ?? -1) - (task.rate ?? -1)) > 1e-9;
}

// textOf returns the text of a task for searching, in lower case.
function textOf(task) {
  if (task.text === undefined) {
    const seen = new Set(); // reasons of its trials
    for (const at of trialsOf(task)) if (TRIALS.why[at] >= 0) seen.add(TRIALS.why[at]);
    task.text = [
      task.id,
      task.name,
      task.description,
      task.verdict,
      ...(task.tags || []),
      ...(task.groups || []),
      task.trigger && task.trigger.prompt,
      task.error,
      ...(task.reasons || []).flatMap((r) => [r.grader, r.message]),
      ...[...seen].map((n) => TRIALS.whys[n]),
    ]
      .filter(Boolean)
      .join('\n')
      .toLowerCase();
  }
  return task.text;
}

// MEASURES are the numbers of trials that can be drawn and sorted by.
const MEASURES = {
  score: { title: 'Score', of: TRIALS.score, form: score, most: 1, unit: '' },
  ms: { title: 'Time', of: TRIALS.ms, form: duration, unit: 'per trial' },
  tokens: { title: 'Tokens', of: TRIALS.tokens, form: short, unit: 'per trial' },
  cost: { title: 'Cost', of: TRIALS.cost, form: money, unit: 'per trial' },
};

// parsed is resolved when the whole file was read, because the chunks are at its end.
const parsed = new Promise((done) => {
  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', done, { once: true });
  else done();
});

let chunks = null; // from the index of a trial to the element of its chunk
const opened = new Map(); // unpacked chunks, the latest last
const MOST_OPENED = 6;

async function findChunk(at) {
  await parsed;
  if (!chunks) {
    chunks = new Map();
    for (const element of document.querySelectorAll('script[data-trials]')) {
      for (const range of element.dataset.trials.split(',')) {
        const [first, last = first] = range.split('-').map(Number);
        for (let i = first; i <= last; i++) chunks.set(i, element);
      }
    }
  }
  return chunks.get(at);
}

async function unpack(element) {
  const packed = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(plain).text());
}

// loadTrial returns the whole data of a trial, or null if its transcript is not in the
// file.
async function loadTrial(at) {
  if (HOST.loadTrial) return HOST.loadTrial(taskOf(at).id, TRIALS.num[at]);
  const element = await findChunk(at);
  if (!element) return null;
  const list = opened.get(element) || (await unpack(element));
  opened.delete(element);
  opened.set(element, list);
  if (opened.size > MOST_OPENED) opened.delete(opened.keys().next().value);
  return list.find((trial) => trial.at === at) || null;
}
