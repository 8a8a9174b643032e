import { useEffect, useMemo, useState } from 'preact/hooks';
import { canResume, isDamaged, modelOf, passRate, runs, wantRuns, type Run } from '../net/runs';
import { useStore } from '../net/store';
import { count, duration, exactly, percent, plural, when } from '../format';
import { SUSPICIOUS } from '../live/model';
import { Status } from '../parts/status';
import { Virtual } from '../parts/virtual';
import { compareOf, go, reportOf, to } from '../route';
import { again, resume } from './actions';

const STATUSES = ['', 'running', 'completed', 'failed', 'cancelled', 'interrupted'];
const ROW = 34;
const WIDE = '(min-width: 46rem)';
const NARROW_ROW = 68;

/** All recorded runs. */
export function Runs() {
  const [search, setSearch] = useState('');
  const [status, setStatus] = useState('');
  useEffect(wantRuns, []);
  const known = useStore(runs);
  const list = useMemo(() => {
    const wanted = search.toLowerCase();
    return (known?.list ?? []).filter(
      (r) =>
        (!status || r.status === status) &&
        (!wanted || r.suite.name.toLowerCase().includes(wanted) || r.runId.includes(wanted) || modelOf(r).toLowerCase().includes(wanted)),
    );
  }, [known, search, status]);
  if (!known) return <p class="quiet">Loading…</p>;
  return (
    <>
      <div class="bar">
        <p class="quiet" role="status" data-testid="run-count">
          {plural(list.length, 'run')}
          {!known.all && ', loading older ones…'}
        </p>
        <span class="grow" />
        <label>
          <span class="hidden">Status</span>
          <select value={status} onChange={(e) => setStatus(e.currentTarget.value)}>
            {STATUSES.map((s) => (
              <option key={s} value={s}>{s || 'all'}</option>
            ))}
          </select>
        </label>
        <input type="search" data-search aria-label="Search runs" placeholder="Suite, run or model" value={search} onInput={(e) => setSearch(e.currentTarget.value)} />
      </div>
      {list.length > 0 ? <RunTable list={list} label="Runs" tall /> : <p class="quiet">No matching runs.</p>}
    </>
  );
}

/** A table of runs with actions. Two runs can be selected and compared. */
export function RunTable({ list, label, tall = false }: { list: Run[]; label: string; tall?: boolean }) {
  const [chosen, setChosen] = useState<string[]>([]);
  const [at, setAt] = useState(-1);
  const wide = useWide();
  const row = Math.min(at, list.length - 1);
  const choose = (id: string): void => setChosen((c) => (c.includes(id) ? c.filter((o) => o !== id) : [...c.slice(-1), id]));
  const keys = (e: KeyboardEvent): void => {
    if ((e.target as HTMLElement).getAttribute('role') !== 'grid') return;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12, Home: -list.length, End: list.length }[e.key];
    const run = list[row];
    if (step !== undefined) setAt(Math.min(list.length - 1, Math.max(0, row + step)));
    else if (e.key === 'Enter' && run) go('jobs', run.runId);
    else if (e.key === ' ' && run) choose(run.runId);
    else return;
    e.preventDefault();
  };
  // The comparison starts from the older run.
  const pair = chosen.map((id) => list.find((r) => r.runId === id)).filter((r) => r !== undefined).sort((a, b) => a.startedAt.localeCompare(b.startedAt));
  return (
    <>
      <div class="line compare">
        {pair.length === 2 ? (
          <a class="button primary" href={compareOf(pair[0]!.runId, pair[1]!.runId)}>Compare 2 runs</a>
        ) : (
          <span class="quiet">{pair.length === 1 ? 'Select another run to compare.' : 'Select two runs to compare them.'}</span>
        )}
        {pair.length > 0 && <button type="button" class="quiet" onClick={() => setChosen([])}>Clear</button>}
      </div>
      <Virtual
        class={`runs ${tall ? 'tall' : ''}`}
        role="grid"
        label={`${label}. Arrow keys move, Enter opens, Space selects.`}
        count={list.length}
        columns={8}
        height={wide ? ROW : NARROW_ROW}
        at={row}
        active={row >= 0 ? `run-${list[row]?.runId}` : undefined}
        onKeyDown={keys}
        head={
          <>
            <span role="columnheader" class="pick"><span class="hidden">Compare</span></span>
            <span role="columnheader" class="state">Status</span>
            <span role="columnheader" class="name">Suite</span>
            <span role="columnheader" class="model">Model</span>
            <span role="columnheader" class="time">Started</span>
            <span role="columnheader" class="took">Duration</span>
            <span role="columnheader" class="rate">Passed</span>
            <span role="columnheader" class="do"><span class="hidden">Actions</span></span>
          </>
        }
        row={(i) => <Row run={list[i]!} active={i === row} chosen={chosen.includes(list[i]!.runId)} choose={choose} />}
      />
    </>
  );
}

function useWide(): boolean {
  const [wide, setWide] = useState(() => matchMedia(WIDE).matches);
  useEffect(() => {
    const m = matchMedia(WIDE);
    const change = (): void => setWide(m.matches);
    m.addEventListener('change', change);
    return () => m.removeEventListener('change', change);
  }, []);
  return wide;
}

function Row({ run: r, active, chosen, choose }: { run: Run; active: boolean; chosen: boolean; choose(id: string): void }) {
  const rate = passRate(r.trials);
  return (
    <>
      <span role="gridcell" class="pick">
        <input type="checkbox" tabIndex={-1} checked={chosen} aria-label={`Select ${r.runId} to compare`} onChange={() => choose(r.runId)} />
      </span>
      <span role="gridcell" class="state"><Status of={r.status} /></span>
      <span role="gridcell" class={`name ${active ? 'active' : ''}`} id={`run-${r.runId}`}>
        <a tabIndex={-1} href={to('jobs', r.runId)} title={`${r.runId} · ${r.suite.path}`}>{r.suite.name}</a>
        {r.suspicious ? <> <span class="tag" title={SUSPICIOUS}>{count(r.suspicious)} suspicious</span></> : null}
        {isDamaged(r) && <> <span class="tag">damaged record</span></>}
      </span>
      <span role="gridcell" class="model" title={modelOf(r)}>{modelOf(r)}</span>
      <span role="gridcell" class="time" title={exactly(r.startedAt)}>{when(r.startedAt)}</span>
      <span role="gridcell" class="took">{r.durationMs === null ? '' : duration(r.durationMs)}</span>
      <span role="gridcell" class="rate" title={`${r.trials.passed} of ${r.trials.total} trials passed`}>{rate === null ? '–' : percent(rate)}</span>
      <span role="gridcell" class="do">
        {canResume(r) && <button type="button" tabIndex={-1} aria-label={`Resume ${r.runId}`} onClick={() => void resume(r.runId)}>Resume</button>}
        {r.status !== 'running' && <button type="button" tabIndex={-1} aria-label={`Run ${r.suite.name} again`} onClick={() => void again(r)}>Again</button>}
        <a tabIndex={-1} href={reportOf(r.runId)} aria-label={`Report of ${r.runId}`}>Report</a>
      </span>
    </>
  );
}
