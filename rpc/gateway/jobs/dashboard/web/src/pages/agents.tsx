import { useEffect } from 'preact/hooks';
import { call, on, onSession } from '../net/rpc';
import { Store, useStore } from '../net/store';
import { count, exactly, when } from '../format';
import { Progress } from '../parts/status';

interface Agent {
  clientId: string;
  state: string;
  tools: string[];
  maxConcurrency: number;
  running: number;
  answered: number;
  version?: string;
  address?: string;
  since: string;
}

const agents = new Store<Map<string, Agent> | null>(null);

function take(a: Agent): void {
  const known = agents.value ?? new Map<string, Agent>();
  if (a.state === 'gone' && a.running === 0) known.delete(a.clientId);
  else known.set(a.clientId, a);
  agents.set(known);
}

async function read(): Promise<void> {
  try {
    const r = await call<{ agents: Agent[] }>('agent.list', { watch: true });
    agents.set(new Map(r.agents.map((a) => [a.clientId, a])));
  } catch {
    // the next session loads them
  }
}

/** The agents that execute trials of suites with `executor: remote`. */
export function Agents() {
  useEffect(() => {
    const stops = [
      on<{ agent?: Agent }>('agent.changed', (m) => m.agent && take(m.agent)),
      onSession(() => void read()),
      () => void call('agent.list', { watch: false }).catch(() => undefined),
    ];
    void read();
    return () => stops.forEach((f) => f());
  }, []);
  const known = useStore(agents);
  if (!known) return <p class="quiet">Loading…</p>;
  const list = [...known.values()].sort((a, b) => a.clientId.localeCompare(b.clientId));
  if (list.length === 0)
    return (
      <p class="quiet">
        No agent is connected. <code>waza agent --exec COMMAND</code> turns any program into an agent.
      </p>
    );
  return (
    <ul class="cards" data-testid="agents">
      {list.map((a) => (
        <li key={a.clientId} class="card">
          <div class="line">
            <span class="mono title">{a.clientId}</span>
            <span class={`status agent-${a.state}`}>{a.state}</span>
            <span class="grow" />
            <span class="quiet" title={exactly(a.since)}>since {when(a.since)}</span>
          </div>
          <Progress percent={a.maxConcurrency > 0 ? (100 * a.running) / a.maxConcurrency : 0} label="Evaluations in progress" />
          <div class="line quiet">
            <span>{a.running} of {a.maxConcurrency} evaluations in progress</span>
            <span>{count(a.answered)} answered</span>
            {a.tools.length > 0 && <span>tools: {a.tools.join(', ')}</span>}
            {a.version && <span>version {a.version}</span>}
            {a.address && <span class="mono">{a.address}</span>}
          </div>
        </li>
      ))}
    </ul>
  );
}
