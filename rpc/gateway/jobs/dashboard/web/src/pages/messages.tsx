import { useState } from 'preact/hooks';
import { count, exactly, plural, when } from '../format';
import { usePolled } from '../net/polled';
import { call } from '../net/rpc';
import { complain } from '../net/notices';

interface Client {
  id: string;
  name: string;
  description: string;
  version?: string;
  capabilities?: string[];
  address: string;
  since: string;
  waiting: number;
  taken: number;
}

interface Message {
  id: string;
  text: string;
  timestamp: string;
  inputMethod: string;
  confidence?: number;
  status: string;
  why?: string;
  choices: { by: string; clients: string[]; reason?: string; at: string }[];
  recipients: { client: string; state: string; reason?: string; at: string }[];
  notifications?: { client: string; title: string; body: string; priority: string; at: string }[];
  droppedNotifications?: number;
}

/** The clients of the message router, and the last messages with their results. */
export function Messages() {
  const clients = usePolled<{ clients: Client[] }>('message.clients');
  const messages = usePolled<{ messages: Message[] }>('message.list');
  const problem = clients.problem || messages.problem;
  if (problem) return <p class="why" role="alert">{problem}</p>;
  if (!clients.value || !messages.value) return <p class="quiet">Loading…</p>;
  return (
    <>
      <Send sent={messages.again} />
      <h2>Clients</h2>
      {clients.value.clients.length === 0 && (
        <p class="quiet">
          No client is connected. Clients of the message router connect to <code>ws://localhost:9473</code>.
        </p>
      )}
      <ul class="cards" data-testid="clients">
        {clients.value.clients.map((c) => (
          <One key={c.id} client={c} />
        ))}
      </ul>
      <h2>Messages</h2>
      {messages.value.messages.length === 0 && <p class="quiet">No messages yet.</p>}
      <ul class="cards wide" data-testid="messages">
        {messages.value.messages.map((m) => (
          <Sent key={m.id} message={m} />
        ))}
      </ul>
    </>
  );
}

function Send({ sent }: { sent: () => void }) {
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const send = async (e: Event): Promise<void> => {
    e.preventDefault();
    setBusy(true);
    try {
      await call('message.send', { text, wait: false });
      setText('');
      sent();
    } catch (problem) {
      complain(problem);
    }
    setBusy(false);
  };
  return (
    <form class="bar" onSubmit={(e) => void send(e)}>
      <input
        class="grow" aria-label="Message" placeholder="notebook: buy milk" value={text} maxLength={10_000} required
        onInput={(e) => setText(e.currentTarget.value)}
      />
      <button type="submit" disabled={busy || text.trim() === ''}>Send</button>
    </form>
  );
}

function One({ client: c }: { client: Client }) {
  return (
    <li class="card">
      <div class="line">
        <span class="title">{c.name}</span>
        <span class={`status ${c.waiting > 0 ? 'is-running' : ''}`}>{c.waiting > 0 ? `${count(c.waiting)} unanswered` : 'free'}</span>
        <span class="grow" />
        <span class="quiet" title={exactly(c.since)}>since {when(c.since)}</span>
      </div>
      <p class="said">{c.description}</p>
      <div class="line quiet">
        <span>{plural(c.taken, 'message')} taken</span>
        {c.capabilities && c.capabilities.length > 0 && <span>{c.capabilities.join(', ')}</span>}
        {c.version && <span>version {c.version}</span>}
        <span class="mono">{c.address}</span>
      </div>
    </li>
  );
}

const MARK: Record<string, string> = { choosing: 'is-running', asked: 'is-running', taken: 'is-passed', refused: 'is-failed', undelivered: 'is-failed' };
const BY: Record<string, string> = { prefix: 'named by the message', model: 'chosen by the model', words: 'chosen by its words' };

function Sent({ message: m }: { message: Message }) {
  const first = m.choices[0];
  return (
    <li class="card">
      <div class="line">
        <span class={`status ${MARK[m.status] ?? ''}`}>{m.status}</span>
        <span class="quiet">
          {m.inputMethod}
          {m.confidence !== undefined && `, ${Math.round(m.confidence * 100)} % sure`}
        </span>
        <span class="grow" />
        <span class="quiet" title={exactly(m.timestamp)}>{when(m.timestamp)}</span>
      </div>
      <p class="said">{m.text}</p>
      {m.why && <p class="quiet">{m.why}</p>}
      {m.recipients.length > 0 && (
        <ul class="plain">
          {m.recipients.map((r) => (
            <li key={r.client} class="line">
              <strong>{r.client}</strong> {r.state}
              {r.reason && <span class="quiet">{r.reason}</span>}
            </li>
          ))}
        </ul>
      )}
      {first && (
        <details>
          <summary>Why</summary>
          <ol>
            {m.choices.map((c) => (
              <li key={c.at}>
                {c.clients.length > 0 ? `${c.clients.join(', ')}: ${BY[c.by] ?? c.by}` : 'nobody'}
                {c.reason && <span class="quiet">. {c.reason}</span>}
              </li>
            ))}
          </ol>
        </details>
      )}
      {m.notifications?.map((n) => (
        <div key={n.at} class={`notification ${n.priority}`}>
          <strong>{n.title}</strong> <span class="said">{n.body}</span>
        </div>
      ))}
      {m.droppedNotifications ? <p class="quiet">{plural(m.droppedNotifications, 'further notification')}, not kept</p> : null}
    </li>
  );
}
