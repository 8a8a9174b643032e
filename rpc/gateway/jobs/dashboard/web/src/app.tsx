import type { ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { signOut, tokens } from './net/auth';
import { socket as jobSocket } from './net/jobs';
import { socket as rpcSocket } from './net/rpc';
import { useStore } from './net/store';
import { Agents } from './pages/agents';
import { Assistants } from './pages/assistants';
import { Fleet } from './pages/fleet';
import { Jobs } from './pages/jobs';
import { Live } from './pages/live';
import { Login } from './pages/login';
import { Messages } from './pages/messages';
import { Runs } from './pages/runs';
import { Suite } from './pages/suite';
import { Suites } from './pages/suites';
import { Keys } from './parts/keys';
import { Notices } from './parts/notices';
import { go, route, to } from './route';
import { nextTheme, theme } from './theme';

const PAGES: [name: string, title: string, key: string][] = [
  ['jobs', 'Jobs', 'j'],
  ['suites', 'Suites', 's'],
  ['runs', 'Runs', 'r'],
  ['agents', 'Agents', 'a'],
  ['assistants', 'Assistants', 'b'],
  ['messages', 'Messages', 'm'],
  ['fleet', 'Fleet', 'f'],
];

const LISTS: Record<string, ComponentType> = { jobs: Jobs, suites: Suites, runs: Runs, agents: Agents, assistants: Assistants, messages: Messages, fleet: Fleet };
const ONES: Record<string, ComponentType<{ id: string }>> = { jobs: Live, suites: Suite };

export function App({ problem }: { problem: string }) {
  const signedIn = useStore(tokens) !== null;
  const [was, setWas] = useState(false);
  useEffect(() => {
    if (signedIn) setWas(true);
  }, [signedIn]);
  if (!signedIn) return <Login key={was ? 'again' : 'first'} problem={was ? 'your session has ended' : problem} />;
  return <Signed />;
}

function Signed() {
  const { page, id } = useStore(route);
  const [help, setHelp] = useState(false);
  const main = useRef<HTMLElement>(null);
  useShortcuts(() => setHelp(true));
  const title = PAGES.find(([name]) => name === page)?.[1];
  useEffect(() => {
    document.title = `${id ? `${id.split('/').slice(-2).join('/')} · ` : ''}${title ?? 'Not found'} · waza`;
  }, [title, id]);
  const One = id ? ONES[page] : undefined;
  const List = LISTS[page];
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), main.current?.focus())}>Skip to content</a>
      <header class="top">
        <a class="brand" href={to('jobs')}>waza</a>
        <nav aria-label="Pages">
          {PAGES.map(([name, text]) => (
            <a key={name} href={to(name)} aria-current={name === page ? 'page' : undefined}>{text}</a>
          ))}
        </nav>
        <span class="grow" />
        <Standing />
        <ThemeButton />
        <button type="button" class="quiet" aria-haspopup="dialog" aria-label="Keyboard shortcuts" title="Keyboard shortcuts" onClick={() => setHelp(true)}>?</button>
        <button type="button" class="quiet" onClick={signOut}>Sign out</button>
      </header>
      <Crowded />
      <main id="main" ref={main} tabIndex={-1}>
        {One ? <One key={id} id={id} /> : List ? <><h1 class={page === 'jobs' ? 'hidden' : ''}>{title}</h1><List /></> : <h1>Page not found</h1>}
      </main>
      <Notices />
      <Keys open={help} close={() => setHelp(false)} pages={PAGES} />
    </>
  );
}

function ThemeButton() {
  const t = useStore(theme);
  return (
    <button type="button" class="quiet" onClick={nextTheme} aria-label={`Theme: ${t}`} title={`Theme: ${t}`}>
      {{ system: '◐', light: '☀', dark: '☾' }[t]}
    </button>
  );
}

/** Shows whether the page is connected. */
function Standing() {
  const a = useStore(jobSocket.standing);
  const b = useStore(rpcSocket.standing);
  const open = a === 'open' && b === 'open';
  const text = open ? 'connected' : a === 'crowded' ? 'too many tabs' : a === 'waiting' || b === 'waiting' ? 'reconnecting' : 'connecting';
  return <span class={`standing ${open ? 'on' : 'off'}`} role="status" data-testid="standing"><span class="dot" aria-hidden="true" /> {text}</span>;
}

function Crowded() {
  if (useStore(jobSocket.standing) !== 'crowded') return null;
  return (
    <div class="banner" role="alert">
      <span>This tab gets no updates, because you already have five connections to the server. Close another tab.</span>
      <button type="button" onClick={() => jobSocket.hurry()}>Try again</button>
    </div>
  );
}

function useShortcuts(help: () => void): void {
  useEffect(() => {
    const press = (e: KeyboardEvent): void => {
      const at = e.target as HTMLElement;
      if (e.altKey || e.ctrlKey || e.metaKey || at.closest('input, select, textarea, dialog')) {
        if (e.key === 'Escape' && at.matches('input')) at.blur();
        return;
      }
      const page = PAGES.find(([, , key]) => key === e.key);
      if (page) go(page[0]);
      else if (e.key === 't') nextTheme();
      else if (e.key === '?') help();
      else if (e.key === '/') document.querySelector<HTMLElement>('[data-search]')?.focus();
      else if (e.key === 'g') document.querySelector<HTMLElement>('.virtual')?.focus();
      else return;
      e.preventDefault();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, []);
}
