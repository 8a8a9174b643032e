import { useEffect, useState } from 'preact/hooks';
import { call, onSession } from '../net/rpc';
import { passRate, runs, wantRuns, type Run } from '../net/runs';
import { Store, useStore } from '../net/store';
import { count, exactly, percent, plural, when } from '../format';
import { Status } from '../parts/status';
import { to } from '../route';
import { start } from './actions';

interface Listed {
  path: string;
  name: string;
  description?: string;
  executor?: string;
}

interface Suite extends Listed {
  found: boolean;
  runs: number;
  last: Run | null;
}

interface Found {
  list: Listed[];
  problems: number;
}

const found = new Store<Found | null>(null);

async function read(): Promise<void> {
  try {
    const r = await call<{ evals: Listed[]; problems?: unknown[] }>('eval.list');
    found.set({ list: r.evals, problems: r.problems?.length ?? 0 });
  } catch (e) {
    if ((e as { code?: number }).code !== 0) found.set({ list: [], problems: 1 });
  }
}

/** Joins the existing suites and those of recorded runs. */
function join(listed: Listed[], recorded: Run[]): Suite[] {
  const all = new Map<string, Suite>(listed.map((s) => [s.path, { ...s, found: true, runs: 0, last: null }]));
  for (const r of recorded) {
    const s = all.get(r.suite.path) ?? { path: r.suite.path, name: r.suite.name, executor: r.executor, found: false, runs: 0, last: null };
    s.runs++;
    s.last ??= r;
    all.set(r.suite.path, s);
  }
  return [...all.values()].sort((a, b) => a.name.localeCompare(b.name) || a.path.localeCompare(b.path));
}

/** The suites below the server's directory, and those of recorded runs. */
export function Suites() {
  const [search, setSearch] = useState('');
  useEffect(() => {
    wantRuns();
    void read();
    return onSession(() => void read());
  }, []);
  const listed = useStore(found);
  const recorded = useStore(runs);
  if (!listed || !recorded) return <p class="quiet">Loading…</p>;
  const wanted = search.toLowerCase();
  const list = join(listed.list, recorded.list).filter((s) => !wanted || s.name.toLowerCase().includes(wanted) || s.path.toLowerCase().includes(wanted));
  return (
    <>
      <div class="bar">
        <p class="quiet">
          {plural(list.length, 'suite')} below the server's directory and of recorded runs
          {listed.problems > 0 && `; ${plural(listed.problems, 'file')} could not be read`}
        </p>
        <span class="grow" />
        <input type="search" data-search aria-label="Search suites" placeholder="Search" value={search} onInput={(e) => setSearch(e.currentTarget.value)} />
      </div>
      {list.length === 0 && <p class="quiet">No suites found.</p>}
      <ul class="cards wide" data-testid="suites">
        {list.slice(0, 300).map((s) => (
          <One key={s.path} suite={s} />
        ))}
      </ul>
      {list.length > 300 && <p class="quiet">{count(list.length - 300)} more. Use the search to find them.</p>}
    </>
  );
}

function One({ suite: s }: { suite: Suite }) {
  const rate = s.last && passRate(s.last.trials);
  return (
    <li class="card">
      <div class="line">
        <a class="title" href={to('suites', s.path)}>{s.name}</a>
        {s.executor && <span class="tag">{s.executor}</span>}
        <span class="grow" />
        <button type="button" aria-label={`Start ${s.name}`} onClick={() => void start(s.path)}>Start</button>
      </div>
      {s.description && <p class="quiet">{s.description}</p>}
      <p class="quiet mono path" title={s.path}>{s.path}</p>
      <div class="line quiet">
        {s.last ? (
          <>
            <span>{plural(s.runs, 'run')}</span>
            <span class="line">
              last <a href={to('jobs', s.last.runId)} title={exactly(s.last.startedAt)}>{when(s.last.startedAt)}</a>
              <Status of={s.last.status} />
              {rate !== null && <span>pass rate {percent(rate)}</span>}
            </span>
          </>
        ) : (
          <span>no runs yet</span>
        )}
        {!s.found && <span>outside the server's directory</span>}
      </div>
    </li>
  );
}
