import { Socket, wsAddress } from './socket';
import { Store } from './store';
import { notice } from './notices';

export interface Job {
  id: string;
  type: string;
  status: string;
  percent: number;
  detail: string;
  error: string;
  /** Damage to the record of a finished job. */
  damage: string;
  user: string;
  created: string;
  finished: string;
  suite: string;
}

/** A job in messages of the server. */
interface Sent {
  id?: string;
  job_id?: string;
  job_type?: string;
  status?: string;
  progress_pct?: number;
  progress_detail?: string;
  error?: string;
  damage?: string;
  user?: string;
  created_at?: string;
  completed_at?: string;
  timestamp?: string;
}

interface Message extends Sent {
  type: string;
  active_jobs?: Sent[];
  recent_jobs?: Sent[];
  message?: string;
  data?: { suite_name?: string };
}

const MOST = 200;
const PING_MS = 30_000;
const OVER = new Set(['done', 'failed', 'cancelled', 'interrupted']);

export const isOver = (j: Job): boolean => OVER.has(j.status);

/** The jobs by id; null before the first sync. */
export const jobs = new Store<Map<string, Job> | null>(null);

const ended = new Set<(j: Job) => void>();

/** Calls f when a job is created or ends. */
export function onJobChange(f: (j: Job) => void): () => void {
  ended.add(f);
  return () => ended.delete(f);
}

export const socket = new Socket((t) => [wsAddress(`/ws?token=${encodeURIComponent(t.access)}`), []], {
  open() {
    ping();
  },
  message(text) {
    take(JSON.parse(text) as Message);
  },
  closed() {
    // the next sync replaces the shown jobs
  },
});

function ping(): void {
  socket.send('{"type":"ping"}');
}

setInterval(ping, PING_MS);

/** Asks the server to cancel a job. Returns false when the server is not connected. */
export function cancel(id: string): boolean {
  return socket.send(JSON.stringify({ type: 'cancel', job_id: id }));
}

function jobOf(s: Sent): Job {
  return {
    id: s.id ?? s.job_id ?? '',
    type: s.job_type ?? '',
    status: s.status ?? '',
    percent: s.progress_pct ?? 0,
    detail: s.progress_detail ?? '',
    error: s.error ?? '',
    damage: s.damage ?? '',
    user: s.user ?? '',
    created: s.created_at ?? s.timestamp ?? '',
    finished: s.completed_at ?? '',
    suite: '',
  };
}

function take(m: Message): void {
  if (m.type === 'sync') {
    const all = [...(m.active_jobs ?? []), ...(m.recent_jobs ?? [])].map(jobOf);
    jobs.set(new Map(all.map((j) => [j.id, j])));
    for (const f of ended) for (const j of all) f(j);
    return;
  }
  if (m.type === 'error') {
    notice(m.message ?? 'the request failed', 'problem');
    return;
  }
  const known = jobs.value;
  const id = m.job_id;
  if (!known || !id) return;
  if (m.type === 'job_created') {
    known.delete(id); // it starts again, as the newest job
    known.set(id, jobOf(m));
    prune(known);
    jobs.touch();
    for (const f of ended) f(known.get(id)!);
    return;
  }
  const j = known.get(id);
  if (j && apply(j, m)) jobs.touch();
}

/** Applies a message to a job. Returns false for messages that are not about its state. */
function apply(j: Job, m: Message): boolean {
  switch (m.type) {
    case 'job_started':
      j.status = 'running';
      return true;
    case 'job_progress':
      j.percent = m.progress_pct ?? j.percent;
      j.detail = m.progress_detail ?? j.detail;
      return true;
    case 'job_completed':
    case 'job_failed':
    case 'job_cancelled':
      j.status = m.status ?? { job_completed: 'done', job_failed: 'failed', job_cancelled: 'cancelled' }[m.type];
      j.error = m.error ?? '';
      j.finished = m.timestamp ?? '';
      if (j.status === 'done') {
        j.percent = 100;
        j.detail = j.detail.replace(/\d+ of (\d+)/, '$1 of $1');
      }
      for (const f of ended) f(j);
      return true;
  }
  if (!m.type.endsWith('_init') || !m.data) return false;
  j.suite = m.data.suite_name ?? j.suite;
  j.percent = m.progress_pct ?? j.percent;
  return true;
}

function prune(known: Map<string, Job>): void {
  for (const [id, j] of known) {
    if (known.size <= MOST) return;
    if (isOver(j)) known.delete(id);
  }
}
