import { useEffect, useState } from 'preact/hooks';
import { again, cancel, resume } from '../net/actions';
import { isOver, jobs, onJobChange } from '../net/jobs';
import { call } from '../net/rpc';
import { canResume, runs, type Run } from '../net/runs';
import { useStore } from '../net/store';
import { count, duration, exactly, kindOf, percent, when } from '../format';
import { Follower } from '../live/follow';
import { Grid } from '../live/grid';
import { PENDING, STATES, stateText, type Model } from '../live/model';
import { complain, notice } from '../parts/notices';
import { Progress, Status } from '../parts/status';
import { reportOf, to } from '../route';

/** A run, during its execution and after it. */
export function Live({ id }: { id: string }) {
  const [follower, setFollower] = useState<Follower | null>(null);
  useEffect(() => {
    const f = new Follower(id);
    setFollower(f);
    const stop = onJobChange((j) => {
      const status = f.store.value.model.status;
      if (j.id === id && !isOver(j) && status && status !== 'running') void f.start();
    });
    return () => {
      stop();
      f.close();
    };
  }, [id]);
  return follower && <Shown key={id} id={id} follower={follower} />;
}

function Shown({ id, follower }: { id: string; follower: Follower }) {
  const { model, data, problem } = useStore(follower.store);
  const job = useStore(jobs)?.get(id);
  if (problem)
    return (
      <section class="block">
        <h1>{id}</h1>
        <p class="why">{problem}</p>
      </section>
    );
  const suite = data?.run.suite;
  const running = model.status === 'running';
  const config = data?.run.config;
  return (
    <>
      <header class="head">
        <div>
          <h1>{suite ? <a href={to('suites', suite.path)}>{suite.name}</a> : id}</h1>
          <p class="line quiet">
            {job && <span class="tag">{kindOf(job.type)}</span>}
            <Status of={job?.status === 'queued' ? 'queued' : model.status || 'pending'} />
            <span class="mono" data-testid="run-id">{id}</span>
            {config && <span>{[config.executor, config.agent, config.model].filter(Boolean).join(' · ')}</span>}
            {model.started && <span title={exactly(model.started)}>started {when(model.started)}</span>}
            {data && data.run.tookMs !== null && !running && <span>{duration(data.run.tookMs)}</span>}
          </p>
        </div>
        <div class="line actions">
          {running && <button type="button" onClick={() => cancel(id)}>Cancel</button>}
          {!running && canResume(model) && <button type="button" onClick={() => void resume(id)}>Resume</button>}
          {!running && <button type="button" onClick={() => void repeat(id)}>Run again</button>}
          <a class="button" href={reportOf(id)}>Report</a>
        </div>
      </header>
      {model.failure && model.failure !== 'Eval execution cancelled' && <p class="why">{model.failure}</p>}
      {data?.run.damage && <p class="why">Damaged record: {data.run.damage}</p>}
      <Counts model={model} />
      <Grid model={model} runId={id} />
      <Log model={model} runId={id} />
    </>
  );
}

/** Finds a run: among the loaded ones, then among the newest, then among all. */
async function find(id: string): Promise<Run | undefined> {
  let list = runs.value?.list ?? [];
  for (const limit of [100, 10_000]) {
    const run = list.find((r) => r.runId === id);
    if (run) return run;
    list = (await call<{ runs: Run[] }>('run.list', { limit })).runs;
  }
  return list.find((r) => r.runId === id);
}

/** Starts a run with the settings of a run, after loading them. */
async function repeat(id: string): Promise<void> {
  try {
    const run = await find(id);
    if (run) await again(run);
    else notice('the record of the run no longer exists', 'problem');
  } catch (e) {
    complain(e);
  }
}

function Counts({ model }: { model: Model }) {
  const { counts, total, done } = model;
  const passed = counts[STATES.indexOf('passed')]!;
  const counted = passed + counts[STATES.indexOf('failed')]! + counts[STATES.indexOf('timeout')]!;
  const full = total > 0 ? Math.floor((100 * done) / total) : 0;
  return (
    <section class="block" aria-label="Progress">
      <div class="line figures">
        <span data-testid="done"><b>{count(done)}</b> of {count(total)} trials</span>
        {STATES.map((name, s) =>
          s !== PENDING && counts[s]! > 0 ? (
            <span key={name} class={`figure is-${name}`} data-testid={`count-${name}`}><b>{count(counts[s]!)}</b> {stateText(s)}</span>
          ) : null,
        )}
        {counted > 0 && <span class="quiet">pass rate {percent(passed / counted)}</span>}
      </div>
      <Progress percent={full} label="Finished trials" />
    </section>
  );
}

function Log({ model, runId }: { model: Model; runId: string }) {
  const failures = model.failures.slice(-100).reverse();
  return (
    <section class="block" aria-labelledby="log-title">
      <h2 id="log-title">Failures</h2>
      {failures.length === 0 && model.notes.length === 0 && <p class="quiet">None so far.</p>}
      <ul class="rows log" data-testid="failures">
        {model.notes.slice(-20).map((n, i) => (
          <li key={`note-${i}`} class="line"><span class="status is-error">! {n.level}</span><span class="why">{n.text}</span></li>
        ))}
        {failures.map((f) => (
          <li key={`${f.task.num}-${f.trial}`} class="line">
            <Status of={STATES[f.state]!} />
            <a href={reportOf(runId, f.task.id)}>{f.task.name}</a>
            <span class="quiet">trial {f.trial}{f.score !== null && `, score ${f.score.toFixed(2)}`}</span>
            {f.text && <span class="why">{f.text}</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}
