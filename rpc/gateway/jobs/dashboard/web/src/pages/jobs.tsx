import { isOver, jobs, type Job } from '../net/jobs';
import { useStore } from '../net/store';
import { exactly, kindOf, when } from '../format';
import { Progress, Status } from '../parts/status';
import { reportOf, to } from '../route';
import { cancel, resume } from './actions';

/** The active and recent jobs. */
export function Jobs() {
  const known = useStore(jobs);
  if (!known) return <p class="quiet">Loading jobs…</p>;
  const all = [...known.values()];
  const active = all.filter((j) => !isOver(j)).sort((a, b) => a.created.localeCompare(b.created));
  const recent = all.filter(isOver).sort((a, b) => b.finished.localeCompare(a.finished));
  return (
    <>
      <section class="block" aria-labelledby="active-title">
        <h2 id="active-title">Active</h2>
        {active.length === 0 && (
          <p class="quiet">
            No active jobs. Start one from the <a href={to('suites')}>suites</a>, with <code>waza run</code> or in an editor.
          </p>
        )}
        <ul class="cards" data-testid="active">
          {active.map((j) => (
            <Active key={j.id} job={j} />
          ))}
        </ul>
      </section>
      <section class="block" aria-labelledby="recent-title">
        <h2 id="recent-title">Recent</h2>
        {recent.length === 0 && <p class="quiet">No finished jobs yet.</p>}
        <ul class="rows" data-testid="recent">
          {recent.map((j) => (
            <Recent key={j.id} job={j} />
          ))}
        </ul>
      </section>
    </>
  );
}

const nameOf = (j: Job): string => j.suite || j.detail.replace(/: \d+ of \d+ cases$/, '') || j.id;
const countsOf = (j: Job): string => /\d+ of \d+ cases$/.exec(j.detail)?.[0] ?? j.detail;

/** The user of a job, for admins, who see the jobs of all users. */
function Owner({ job: j }: { job: Job }) {
  return j.user && j.user !== 'owner' ? <span class="tag">{j.user}</span> : null;
}

function Active({ job: j }: { job: Job }) {
  return (
    <li class="card" data-job={j.id}>
      <div class="line">
        <a class="title" href={to('jobs', j.id)}>{nameOf(j)}</a>
        <span class="tag">{kindOf(j.type)}</span>
        <Owner job={j} />
        <Status of={j.status} />
        <span class="grow" />
        <button type="button" onClick={() => cancel(j.id)} aria-label={`Cancel ${nameOf(j)}`}>Cancel</button>
      </div>
      <Progress percent={j.percent} label={`Progress of ${nameOf(j)}`} />
      <div class="line quiet">
        <span class="mono">{j.id}</span>
        <span>{countsOf(j)}</span>
        <span title={exactly(j.created)}>{j.status === 'running' ? 'started' : 'created'} {when(j.created)}</span>
      </div>
    </li>
  );
}

function Recent({ job: j }: { job: Job }) {
  return (
    <li class="line" data-job={j.id}>
      <Status of={j.status} />
      <a class="title" href={to('jobs', j.id)}>{nameOf(j)}</a>
      <span class="tag">{kindOf(j.type)}</span>
      <Owner job={j} />
      <span class="quiet">{countsOf(j)}</span>
      {j.error && <span class="why">{j.error}</span>}
      {j.damage && <span class="why">Damaged record: {j.damage}</span>}
      <span class="grow" />
      <span class="quiet" title={exactly(j.finished)}>{when(j.finished)}</span>
      {j.status !== 'done' && (
        <button type="button" onClick={() => void resume(j.id)} aria-label={`Resume ${nameOf(j)}`}>Resume</button>
      )}
      <a href={reportOf(j.id)} aria-label={`Report of ${nameOf(j)}`}>Report</a>
    </li>
  );
}
