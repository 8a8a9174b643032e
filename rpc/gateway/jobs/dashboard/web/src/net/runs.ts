import { onJobChange } from './jobs';
import { call, onSession } from './rpc';
import { Store } from './store';

export interface Counts {
  total: number;
  passed: number;
  failed: number;
  errors: number;
  timeouts: number;
  cancelled: number;
  skipped: number;
  needsReview?: number;
}

/** A run in the reply of run.list. */
export interface Run {
  runId: string;
  status: string;
  suite: { path: string; name: string };
  executor: string;
  agent?: string;
  model?: string;
  models?: string[];
  startedAt: string;
  endedAt: string | null;
  durationMs: number | null;
  tasks: Counts;
  trials: Counts;
  /** The number of trials that passed with suspicious moves; they count as passed. */
  suspicious?: number;
  /** Damage to the record, or only doubts about it. */
  damage?: { events: number; parts: number; files?: unknown[] };
}

const FIRST = 100;
const MOST = 10_000;
const LATER_MS = 500;

/** Runs, newest first; null before they are loaded. `all` is false while older ones are loading. */
export const runs = new Store<{ list: Run[]; all: boolean } | null>(null);

let wanted = false;
let timer = 0;

/** Loads the runs, and reloads them after changes. Components that show runs call it. */
export function wantRuns(): void {
  if (wanted) return;
  wanted = true;
  onSession(() => void read());
  onJobChange(() => {
    if (!timer) timer = window.setTimeout(() => void update(), LATER_MS);
  });
  void read();
}

async function read(): Promise<void> {
  try {
    const { runs: list } = await call<{ runs: Run[] }>('run.list', { limit: FIRST });
    if (!runs.value || list.length < FIRST) runs.set({ list, all: list.length < FIRST });
    if (list.length < FIRST) return;
    runs.set({ list: (await call<{ runs: Run[] }>('run.list', { limit: MOST })).runs, all: true });
  } catch {
    // the next session loads them
  }
}

/** Loads the newest runs, because only they change. */
async function update(): Promise<void> {
  timer = 0;
  if (!runs.value) return;
  try {
    const { runs: list } = await call<{ runs: Run[] }>('run.list', { limit: FIRST });
    const fresh = new Set(list.map((r) => r.runId));
    const old = list.length < FIRST ? [] : (runs.value?.list ?? []).filter((r) => !fresh.has(r.runId));
    runs.set({ list: [...list, ...old].slice(0, MOST), all: runs.value?.all ?? false });
  } catch {
    // the next session loads them
  }
}

export const modelOf = (r: Run): string => r.models?.join(', ') || r.model || r.agent || r.executor;

export const canResume = (r: { status: string }): boolean => r.status === 'interrupted' || r.status === 'cancelled' || r.status === 'failed';

export const isDamaged = ({ damage: d }: Run): boolean => d !== undefined && (d.events > 0 || d.parts > 0 || (d.files?.length ?? 0) > 0);

/** Returns the share of counted trials that passed; null when none counts. */
export function passRate(trials: Counts): number | null {
  const counted = trials.passed + trials.failed + trials.timeouts;
  return counted > 0 ? trials.passed / counted : null;
}
