import { render } from 'preact';
import { App } from './app';
import { exchange, keepFresh } from './net/auth';
import { socket as jobs } from './net/jobs';
import { socket as rpc } from './net/rpc';
import { applyTheme } from './theme';
import './style/base.css';
import './style/parts.css';
import './style/pages.css';

applyTheme();

/** Removes the one-time code from the address bar and returns it. */
function takeCode(): string {
  const found = new URLSearchParams(location.hash.slice(1));
  const code = found.get('code');
  if (code === null) return '';
  const run = found.get('run');
  history.replaceState(null, '', `/${run ? `#/jobs/${encodeURIComponent(run)}` : '#/jobs'}`);
  window.dispatchEvent(new HashChangeEvent('hashchange'));
  return code;
}

async function start(): Promise<void> {
  const code = takeCode();
  const problem = code ? await exchange(code) : '';
  render(<App problem={problem} />, document.getElementById('app')!);
  jobs.hurry();
  rpc.hurry();
  keepFresh();
}

// The user pasted a link into an open page.
window.addEventListener('hashchange', () => {
  const code = takeCode();
  if (code) void exchange(code);
});

void start();
