import { useEffect, useMemo, useState } from 'preact/hooks';
import { runs, wantRuns } from '../net/runs';
import { useStore } from '../net/store';
import { plural } from '../format';
import { Charts } from '../parts/charts';
import { measures } from '../parts/measures';
import { start } from './actions';
import { RunTable } from './runs';

/** A suite: its runs and their trends. */
export function Suite({ id: path }: { id: string }) {
  useEffect(wantRuns, []);
  const known = useStore(runs);
  const list = useMemo(() => known?.list.filter((r) => r.suite.path === path) ?? [], [known, path]);
  const points = useStore(measures);
  useEffect(() => measures.value.want(list), [list]);
  if (!known) return <p class="quiet">Loading…</p>;
  return (
    <>
      <header class="head">
        <div>
          <h1>{list[0]?.suite.name ?? path.split('/').slice(-2)[0]}</h1>
          <p class="quiet mono path">{path}</p>
        </div>
      </header>
      <Start path={path} />
      {list.length > 0 && <Charts points={points.of(list)} waiting={points.waiting(list)} />}
      <section class="block" aria-labelledby="suite-runs">
        <h2 id="suite-runs">{plural(list.length, 'run')}</h2>
        {list.length > 0 ? <RunTable list={list} label="Runs of the suite" /> : <p class="quiet">The suite has no runs yet.</p>}
      </section>
    </>
  );
}

/** Starts a run, optionally with settings that override the suite's. */
function Start({ path }: { path: string }) {
  const [trials, setTrials] = useState('');
  const [model, setModel] = useState('');
  const [tasks, setTasks] = useState('');
  const submit = (e: Event): void => {
    e.preventDefault();
    const options: Record<string, unknown> = {};
    if (trials) options.trials = Number(trials);
    if (model.trim()) options.model = model.split(',').map((m) => m.trim()).filter(Boolean);
    if (tasks.trim()) options.tasks = tasks.split(',').map((t) => t.trim()).filter(Boolean);
    void start(path, options);
  };
  return (
    <form class="block line start" aria-label="Start a run" onSubmit={submit}>
      <label>Tasks <input type="text" size={14} placeholder="all" value={tasks} onInput={(e) => setTasks(e.currentTarget.value)} /></label>
      <label>Trials <input type="number" min={1} max={1000000} placeholder="suite" value={trials} onInput={(e) => setTrials(e.currentTarget.value)} /></label>
      <label>Models <input type="text" size={16} placeholder="suite" value={model} onInput={(e) => setModel(e.currentTarget.value)} /></label>
      <button type="submit" class="primary">Start</button>
    </form>
  );
}
