import { useEffect, useState } from 'preact/hooks';
import { isOver, jobs, onJobChange } from '../net/jobs';
import { call } from '../net/rpc';
import { canResume, passRate, runs, type Counts, type Run } from '../net/runs';
import { useStore } from '../net/store';
import { count, duration, exactly, kindOf, percent, when } from '../format';
import { Follower } from '../live/follow';
import { Grid } from '../live/grid';
import { shareOf, STATES, SUSPICIOUS, type Model } from '../live/model';
import { complain, notice } from '../net/notices';
import { Progress, Status } from '../parts/status';
import { reportOf, to } from '../route';
import { again, cancel, resume } from './actions';

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
  const { model, data, counts, asks, problem } = useStore(follower.store);
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
            {config?.sandbox && <span data-testid="sandbox">sandbox: {config.sandbox}</span>}
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
      {model.decision && <p class="answer" data-testid="decision"><b>{model.decision}</b></p>}
      {running && model.deciding && <p class="answer" data-testid="deciding">{model.deciding.text}</p>}
      {model.failure && model.failure !== 'Eval execution cancelled' && <p class="why">{model.failure}</p>}
      {data?.run.damage && <p class="why">Damaged record: {data.run.damage}</p>}
      {counts && <Figures counts={counts} model={model} asks={asks} />}
      <Grid model={model} runId={id} />
      <Suspects model={model} runId={id} />
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

function Figures({ counts: c, model, asks }: { counts: Counts; model: Model; asks: boolean }) {
  // Cancelled trials are not done, because they run when the run is resumed.
  // Trials that a question did not need are not done either.
  const done = c.passed + c.failed + c.errors + c.timeouts + (asks ? 0 : c.skipped) + (c.needsReview ?? 0);
  const running = model.status === 'running';
  let share = model.total > 0 ? done / model.total : 0;
  if (asks) share = running ? (model.deciding ? shareOf(model.deciding) : 0) : Number(model.status === 'completed');
  const figures: [state: string, trials: number][] = [
    ['running', model.running], ['passed', c.passed], ['failed', c.failed], ['error', c.errors],
    ['timeout', c.timeouts], ['cancelled', c.cancelled], ['skipped', c.skipped], ['needs_review', c.needsReview ?? 0],
  ];
  const rate = passRate(c);
  const suspicious = model.suspects().reduce((n, t) => n + (t.role ? 0 : t.suspicious), 0);
  return (
    <section class="block" aria-label="Progress">
      <div class="line figures">
        <span data-testid="done"><b>{count(done)}</b> {asks ? 'trials' : `of ${count(model.total)} trials`}</span>
        {figures.map(([name, n]) =>
          n > 0 ? (
            <span key={name} class={`figure is-${name}`} data-testid={`count-${name}`}><b>{count(n)}</b> {asks && name === 'skipped' ? 'not needed' : name.replace('_', ' ')}</span>
          ) : null,
        )}
        {suspicious > 0 && <span class="figure" data-testid="count-suspicious" title={SUSPICIOUS}><b>{count(suspicious)}</b> suspicious</span>}
        {rate !== null && <span class="quiet">pass rate {percent(rate)}</span>}
      </div>
      <Progress percent={Math.floor(100 * share)} label={asks ? 'Used budget' : 'Finished trials'} />
    </section>
  );
}

const MOST_SUSPECTS = 100;

/** Lists the suspicious moves of trials that passed. */
function Suspects({ model, runId }: { model: Model; runId: string }) {
  const tasks = model.suspects();
  if (tasks.length === 0) return null;
  return (
    <section class="block" aria-labelledby="suspects-title">
      <h2 id="suspects-title">Suspicious passes</h2>
      <p class="quiet">Look at these trials: they passed, and the agent made moves that a forger would make.</p>
      <ul class="rows log" data-testid="suspicious">
        {tasks.slice(0, MOST_SUSPECTS).flatMap((t) =>
          t.suspicions.map((s, i) => (
            <li key={`${t.num}-${i}`} class="line">
              <a href={reportOf(runId, t.id)}>{t.name}</a>
              <span class="quiet">trial {s.trialNum}</span>
              <span class="why">{s.rule} in {s.place}: {s.evidence}</span>
            </li>
          )),
        )}
      </ul>
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
