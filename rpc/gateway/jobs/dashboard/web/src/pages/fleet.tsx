import { count, exactly, plural, when } from '../format';
import { usePolled } from '../net/polled';
import { Progress } from '../parts/status';
import { to } from '../route';

interface Need {
  kind: string;
  name: string;
}

interface Class {
  name: string;
  needs?: Need[];
  waiting: number;
  begun: number;
  again?: number;
  workers: number;
  slots: number;
}

interface Run {
  run: string;
  suite: string;
  state: string;
  host: string;
  pid: number;
  trials: number;
  waiting: number;
  begun: number;
  done: number;
  again?: number;
  refused?: number;
  created: string;
  seen: string;
  silent?: boolean;
}

interface Worker {
  id: string;
  host: string;
  pid: number;
  version: string;
  started: string;
  slots: number;
  busy: number;
  done: number;
  draining?: boolean;
  offers: string;
  lacks?: Record<string, string>;
}

interface Queue {
  messages: number;
  bytes: number;
}

interface Survey {
  fleet: string;
  team: string;
  used: boolean;
  orders: Queue;
  results: Queue;
  filesBytes: number;
  classes: Class[];
  runs: Run[];
  workers: Worker[];
  dropped?: number;
}

interface Report {
  known: boolean;
  problem?: string;
  fleet?: Survey;
}

/** The workers of a team, the orders that wait for them, and the runs of the orders. */
export function Fleet() {
  const { value, problem } = usePolled<Report>('fleet.get');
  if (problem) return <p class="why" role="alert">{problem}</p>;
  if (!value) return <p class="quiet">Loading…</p>;
  if (value.problem) return <p class="why" role="alert">{value.problem}</p>;
  if (!value.fleet)
    return (
      <p class="quiet">
        No fleet is configured. <code>waza run --fleet embedded</code> starts one on this machine. To use another fleet, set <code>WAZA_FLEET</code> for the server.
      </p>
    );
  return <Standing of={value.fleet} />;
}

function Standing({ of: s }: { of: Survey }) {
  const runs = s.runs.filter((r) => r.state !== 'over');
  return (
    <>
      <div class="line quiet" data-testid="fleet">
        <span class="mono">{s.fleet}</span>
        <span>team {s.team}</span>
        <span>{plural(s.orders.messages, 'order')} in {bytes(s.orders.bytes)}</span>
        <span>{plural(s.results.messages, 'message')} of results in {bytes(s.results.bytes)}</span>
        <span>files: {bytes(s.filesBytes)}</span>
      </div>
      {s.dropped ? <p class="quiet">{count(s.dropped)} more are not shown.</p> : null}
      <h2>Runs</h2>
      {runs.length === 0 && <p class="quiet">No run uses the fleet.</p>}
      <ul class="cards wide" data-testid="fleet-runs">
        {runs.map((r) => (
          <OneRun key={r.run} run={r} />
        ))}
      </ul>
      <h2>Queues</h2>
      {s.classes.length === 0 && <p class="quiet">No waiting orders.</p>}
      <ul class="cards" data-testid="fleet-queues">
        {s.classes.map((c) => (
          <OneClass key={c.name} of={c} workers={s.workers} />
        ))}
      </ul>
      <h2>Workers</h2>
      {s.workers.length === 0 && (
        <p class="quiet">
          No workers. <code>waza worker --fleet {s.fleet}</code> starts one.
        </p>
      )}
      <ul class="cards" data-testid="fleet-workers">
        {s.workers.map((w) => (
          <OneWorker key={w.id} worker={w} />
        ))}
      </ul>
    </>
  );
}

function OneRun({ run: r }: { run: Run }) {
  return (
    <li class="card">
      <div class="line">
        <a class="title" href={to('jobs', r.run)}>{r.suite || r.run}</a>
        <span class={`status ${r.silent ? 'is-interrupted' : 'is-running'}`}>{r.silent ? 'silent' : r.state}</span>
        <span class="grow" />
        <span class="quiet" title={exactly(r.created)}>since {when(r.created)}</span>
      </div>
      <Progress percent={r.trials > 0 ? (100 * r.done) / r.trials : 0} label="Recorded trials" />
      <div class="line quiet">
        <span>{count(r.done)} of {plural(r.trials, 'trial')} done</span>
        <span>{count(r.begun)} running</span>
        <span>{count(r.waiting)} waiting</span>
        {r.again ? <span>{count(r.again)} retried</span> : null}
        {r.refused ? <span>{count(r.refused)} refused</span> : null}
        <span>
          {r.host}, process {r.pid}
        </span>
      </div>
      {r.silent && (
        <p class="quiet">
          No sign of life from its owner since {when(r.seen)}. <code>waza run --resume {r.run}</code> continues it.
        </p>
      )}
    </li>
  );
}

const KINDS: Record<string, string> = { key: 'variable' };

const needed = (needs: Need[] = []): string =>
  needs.length === 0 ? 'nothing special' : needs.map((n) => `the ${KINDS[n.kind] ?? n.kind} ${n.name}`).join(', ');

function OneClass({ of: c, workers }: { of: Class; workers: Worker[] }) {
  const stuck = c.waiting > 0 && c.workers === 0;
  const why = stuck ? workers.filter((w) => w.lacks?.[c.name]) : [];
  return (
    <li class="card">
      <div class="line">
        <span class="title">Orders that need {needed(c.needs)}</span>
      </div>
      <div class="line quiet">
        <span>{count(c.waiting)} waiting</span>
        <span>{count(c.begun)} running</span>
        {c.again ? <span>{count(c.again)} retried</span> : null}
        <span>
          {plural(c.workers, 'worker')} with {plural(c.slots, 'slot')}
        </span>
      </div>
      {stuck && <p class="why">No worker can execute these orders.</p>}
      {why.length > 0 && (
        <ul class="quiet">
          {why.slice(0, 5).map((w) => (
            <li key={w.id}>
              {w.id}: {w.lacks?.[c.name]}
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

function OneWorker({ worker: w }: { worker: Worker }) {
  return (
    <li class="card">
      <div class="line">
        <span class="mono title">{w.id}</span>
        <span class={`status ${w.draining ? 'agent-paused' : w.busy > 0 ? 'is-running' : ''}`}>{w.draining ? 'draining' : w.busy > 0 ? 'busy' : 'free'}</span>
        <span class="grow" />
        <span class="quiet" title={exactly(w.started)}>since {when(w.started)}</span>
      </div>
      <Progress percent={w.slots > 0 ? Math.min(100, (100 * w.busy) / w.slots) : 0} label="Busy slots" />
      <div class="line quiet">
        <span>
          {count(w.busy)} of {plural(w.slots, 'slot')}
        </span>
        <span>{plural(w.done, 'trial')} done</span>
        <span>{w.offers}</span>
        <span>
          {w.host}, process {w.pid}
        </span>
        <span>version {w.version}</span>
      </div>
    </li>
  );
}

/** Formats a number of bytes briefly. */
function bytes(n: number): string {
  const units = ['kB', 'MB', 'GB', 'TB'];
  if (n < 1000) return plural(n, 'byte');
  let unit = -1;
  for (; n >= 999.5 && unit < units.length - 1; unit++) n /= 1000;
  return `${n < 9.95 ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}
