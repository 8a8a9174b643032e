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
  const [side, setSide] = useState({ a: '', b: '', by: '5', budget: '', unit: 'dollars', risk: '' });
  const asks = side.a.trim() !== '' || side.b.trim() !== '';
  const field = (name: keyof typeof side) => ({
    value: side[name],
    onInput: (e: { currentTarget: { value: string } }): void => setSide({ ...side, [name]: e.currentTarget.value }),
  });
  const submit = (e: Event): void => {
    e.preventDefault();
    const options: Record<string, unknown> = {};
    if (trials) options.trials = Number(trials);
    if (model.trim()) options.model = model.split(',').map((m) => m.trim()).filter(Boolean);
    if (asks) {
      const decide: Record<string, unknown> = { a: side.a.trim(), b: side.b.trim(), better_by: Number(side.by) };
      if (side.unit === 'trials') decide.max_trials = Number(side.budget);
      else decide.max_cost = Number(side.budget);
      if (trials) decide.pairs = Number(trials);
      if (side.risk) decide.risk = Number(side.risk) / 100;
      options.decide = decide;
      delete options.trials;
    }
    if (tasks.trim()) options.tasks = tasks.split(',').map((t) => t.trim()).filter(Boolean);
    void start(path, options);
  };
  return (
    <form class="block line start" aria-label="Start a run" onSubmit={submit}>
      <label>Tasks <input type="text" size={14} placeholder="all" value={tasks} onInput={(e) => setTasks(e.currentTarget.value)} /></label>
      <label>Trials <input type="number" min={1} max={1000000} placeholder="suite" value={trials} onInput={(e) => setTrials(e.currentTarget.value)} /></label>
      <label>Models <input type="text" size={16} placeholder="suite" value={model} onInput={(e) => setModel(e.currentTarget.value)} /></label>
      <fieldset class="line" title="Answer whether B is better than A with as few trials as possible. Leave A and B empty for an ordinary run.">
        <legend>Decide between</legend>
        <label>A <input type="text" size={12} placeholder="a model, or none" required={asks} {...field('a')} /></label>
        <label>B <input type="text" size={12} placeholder="a model, or ." required={asks} {...field('b')} /></label>
        <label>Better by <input type="number" min={0.1} max={100} step="any" required={asks} {...field('by')} /> points</label>
        <label>Budget <input type="number" min={0} step={side.unit === 'trials' ? 1 : 'any'} required={asks} {...field('budget')} /></label>
        <select aria-label="Unit of the budget" {...field('unit')}>
          <option value="dollars">US dollars</option>
          <option value="trials">trials</option>
        </select>
        <label>Risk <input type="number" min={0.1} max={49.9} step="any" placeholder="5" {...field('risk')} /> %</label>
      </fieldset>
      <button type="submit" class="primary">Start</button>
    </form>
  );
}
