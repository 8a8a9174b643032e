import { count, exactly, plural, when } from '../format';
import { usePolled } from '../net/polled';
import { to } from '../route';

interface Command {
  id: string;
  text: string;
  since: string;
  extension?: string;
}

interface Assistant {
  id: string;
  name: string;
  status: string;
  model?: string;
  capabilities: string[];
  lastActiveAt?: string;
  executing?: Command;
  queued?: Command[];
}

interface Extension {
  id: string;
  address: string;
  version?: string;
  evaluation: boolean;
  since: string;
  trial?: string;
  command?: string;
  tool?: string;
  messages: number;
}

interface Listed {
  assistants: Assistant[];
  extensions: Extension[];
}

/** The browser assistants, and the extensions of the browsers that they use. */
export function Assistants() {
  const { value, problem } = usePolled<Listed>('assistant.list');
  if (problem) return <p class="why" role="alert">{problem}</p>;
  if (!value) return <p class="quiet">Loading…</p>;
  return (
    <>
      <h2>Assistants</h2>
      {value.assistants.length === 0 && <p class="quiet">No assistants yet. Create one in the side panel of an extension.</p>}
      <ul class="cards wide" data-testid="assistants">
        {value.assistants.map((a) => (
          <One key={a.id} assistant={a} />
        ))}
      </ul>
      <h2>Extensions</h2>
      {value.extensions.length === 0 && (
        <p class="quiet">
          No extension is connected. <code>waza browser-agent</code> connects a browser without a window.
        </p>
      )}
      <ul class="cards" data-testid="extensions">
        {value.extensions.map((e) => (
          <Browser key={e.id} extension={e} />
        ))}
      </ul>
    </>
  );
}

function One({ assistant: a }: { assistant: Assistant }) {
  const waiting = a.queued ?? [];
  return (
    <li class="card">
      <div class="line">
        <span class="title">{a.name}</span>
        <span class={`status ${a.status === 'active' ? 'is-running' : ''}`}>{a.status}</span>
        <span class="grow" />
        {a.lastActiveAt && <span class="quiet" title={exactly(a.lastActiveAt)}>last active {when(a.lastActiveAt)}</span>}
      </div>
      {a.executing ? (
        <p class="said">
          {a.executing.text} <span class="quiet" title={exactly(a.executing.since)}>since {when(a.executing.since)}</span>
        </p>
      ) : (
        <p class="quiet">No active command.</p>
      )}
      {waiting.length > 0 && (
        <details>
          <summary>{plural(waiting.length, 'command')} waiting</summary>
          <ol>
            {waiting.map((c) => (
              <li key={c.id} class="said">{c.text}</li>
            ))}
          </ol>
        </details>
      )}
      <div class="line quiet">
        <span>capabilities: {a.capabilities.join(', ')}</span>
        {a.model && <span>model {a.model}</span>}
      </div>
    </li>
  );
}

/** Returns the run in the name of a trial, RUN/TASK/TRIAL/ATTEMPT. */
const runOf = (trial: string): string => trial.split('/')[0] ?? '';

function Browser({ extension: e }: { extension: Extension }) {
  const busy = Boolean(e.trial || e.command || e.tool);
  return (
    <li class="card">
      <div class="line">
        <span class="mono title">{e.id || 'without an id'}</span>
        <span class={`status ${busy ? 'is-running' : ''}`}>{busy ? 'busy' : 'free'}</span>
        <span class="grow" />
        <span class="quiet" title={exactly(e.since)}>since {when(e.since)}</span>
      </div>
      {e.trial && (
        <p>
          Trial <a href={to('jobs', runOf(e.trial))}>{e.trial}</a>
        </p>
      )}
      {e.command && <p class="said">{e.command}</p>}
      <div class="line quiet">
        {e.tool && <span>uses {e.tool}</span>}
        <span>{e.evaluation ? 'for evaluations' : "a person's browser"}</span>
        <span>{count(e.messages)} messages</span>
        {e.version && <span>version {e.version}</span>}
        {e.address && <span class="mono">{e.address}</span>}
      </div>
    </li>
  );
}
