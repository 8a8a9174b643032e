import { useMemo, useRef, useState } from 'preact/hooks';
import { duration } from '../format';
import { reportOf } from '../route';
import { Virtual } from '../parts/virtual';
import { ERROR, FAILED, PASSED, PENDING, RUNNING, STATES, stateText, SUSPICIOUS, TIMEOUT, type Model, type Task } from './model';
import { TaskMap } from './map';

const FILTERS: [name: string, states: number[]][] = [
  ['All', []],
  ['Running', [RUNNING]],
  ['Failed', [FAILED, TIMEOUT]],
  ['Errors', [ERROR]],
  ['Passed', [PASSED]],
];
const MOST_CELLS = 60;
const MAPPED = 60;
const ROW = 26;

/** A grid of tasks and trials. */
export function Grid({ model, runId }: { model: Model; runId: string }) {
  const [filter, setFilter] = useState(0);
  const [search, setSearch] = useState('');
  const [at, setAt] = useState<{ row: number; trial: number } | null>(null);
  const box = useRef<HTMLDivElement>(null);

  const plain = filter === 0 && !search;
  const shown = useMemo(() => (plain ? null : chosen(model, FILTERS[filter]![1], search)), [plain, filter, search, model, model.version]);
  const count = shown ? shown.length : model.totalTasks;
  const taskAt = (row: number): Task | undefined => (shown ? shown[row] : model.tasks[row]);
  const active = at && at.row < count ? at : null;
  const task = active ? taskAt(active.row) : undefined;
  const page = Math.max(1, Math.floor((box.current?.querySelector('.virtual')?.clientHeight ?? 400) / ROW) - 2);

  const keys = (e: KeyboardEvent): void => {
    const steps: Record<string, [rows: number, trials: number]> = {
      ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      PageDown: [page, 0], PageUp: [-page, 0], Home: [-count, 0], End: [count, 0],
    };
    const step = steps[e.key];
    if (e.key === 'Enter' && task) location.href = reportOf(runId, task.id);
    if (!step || count === 0 || e.altKey || e.ctrlKey || e.metaKey) return;
    e.preventDefault();
    const from = active ?? { row: step[0] > 0 ? -1 : 0, trial: 0 };
    const row = Math.min(count - 1, Math.max(0, from.row + step[0]));
    const trials = Math.min(MOST_CELLS, taskAt(row)?.trials.length ?? 1);
    setAt({ row, trial: Math.min(Math.max(0, from.trial + step[1]), Math.max(0, trials - 1)) });
  };

  return (
    <section class="block" aria-labelledby="grid-title" ref={box}>
      <div class="bar">
        <h2 id="grid-title">Tasks</h2>
        <div class="choices" role="group" aria-label="Filter">
          {FILTERS.map(([name], i) => (
            <button key={name} type="button" aria-pressed={i === filter} onClick={() => (setFilter(i), setAt(null))}>
              {name}
            </button>
          ))}
        </div>
        <input
          type="search"
          data-search
          aria-label="Search tasks"
          placeholder="Search"
          value={search}
          onInput={(e) => (setSearch(e.currentTarget.value), setAt(null))}
        />
      </div>
      {model.totalTasks > MAPPED && plain && <TaskMap model={model} version={model.version} choose={(row) => setAt({ row, trial: 0 })} />}
      <Virtual
        class="tasks"
        role="grid"
        label="Tasks and their trials. Arrow keys move, Enter opens the report."
        count={count}
        columns={4}
        height={ROW}
        at={active?.row}
        active={active ? `cell-${active.row}-${active.trial}` : undefined}
        onKeyDown={keys}
        head={
          <>
            <span role="columnheader" class="num">#</span>
            <span role="columnheader" class="name">Task</span>
            <span role="columnheader" class="cells">Trials</span>
            <span role="columnheader" class="ms" title="All ended trials of the task">Total time</span>
          </>
        }
        row={(row) => <Row row={row} task={taskAt(row)} trial={active?.row === row ? active.trial : -1} choose={(trial) => setAt({ row, trial })} />}
      />
      <p class="detail" aria-live="polite">
        {active ? describe(task, active, runId) : count === 0 ? 'No matching tasks.' : 'Select a trial with the mouse or the arrow keys.'}
      </p>
    </section>
  );
}

function chosen(model: Model, states: number[], search: string): Task[] {
  const wanted = search.toLowerCase();
  const list: Task[] = [];
  for (const t of model.tasks) {
    if (!t || (wanted && !t.id.toLowerCase().includes(wanted) && !t.name.toLowerCase().includes(wanted))) continue;
    if (states.length === 0 || t.trials.some((s) => states.includes(s))) list.push(t);
  }
  return list;
}

function describe(task: Task | undefined, at: { row: number; trial: number }, runId: string) {
  if (!task) return `Task ${at.row + 1} has not started.`;
  return (
    <>
      <b>{task.name}</b>, trial {task.first + at.trial}{task.trials.length > 1 && ` of ${task.trials.length}`}: {stateText(task.trials[at.trial] ?? PENDING)}
      {task.score !== null && `, score ${task.score.toFixed(2)}`} · <a href={reportOf(runId, task.id)}>report</a>
    </>
  );
}

function Row(p: { row: number; task: Task | undefined; trial: number; choose(trial: number): void }) {
  const t = p.task;
  return (
    <>
      <span role="gridcell" class="num">{t?.num ?? p.row + 1}</span>
      <span role="rowheader" class="name" title={t?.id}>
        {t?.name ?? <i>not started</i>}
        {t?.role && <span class="tag">{t.role}</span>}
        {t && t.suspicious > 0 && <span class="tag" title={SUSPICIOUS}>{t.suspicious} suspicious</span>}
      </span>
      <span role="gridcell" class="cells" id={p.trial >= 0 && !t ? `cell-${p.row}-0` : undefined}>
        {t && <Cells {...p} task={t} />}
      </span>
      <span role="gridcell" class="ms">{t && t.ms > 0 ? duration(t.ms) : ''}</span>
    </>
  );
}

function Cells({ row, task, trial, choose }: { row: number; task: Task; trial: number; choose(trial: number): void }) {
  const cells = [];
  const n = Math.min(MOST_CELLS, task.trials.length);
  for (let i = 0; i < n; i++) {
    const state = task.trials[i]!;
    cells.push(
      <span
        key={i}
        id={i === trial ? `cell-${row}-${i}` : undefined}
        role="img"
        aria-label={`trial ${task.first + i}: ${stateText(state)}`}
        class={`cell s-${STATES[state]}${i === trial ? ' active' : ''}`}
        onClick={() => choose(i)}
      />,
    );
  }
  return (
    <>
      {cells}
      {task.trials.length > n && <span class="more">{`and ${task.trials.length - n} more`}</span>}
    </>
  );
}
