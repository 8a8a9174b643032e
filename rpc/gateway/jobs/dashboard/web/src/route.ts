import { Store } from './net/store';

export interface Route {
  page: string;
  id: string;
}

function read(): Route {
  const [page = '', id = ''] = location.hash.replace(/^#\/?/, '').split('/');
  let decoded = id;
  try {
    decoded = decodeURIComponent(id);
  } catch {
    // it is shown as it is
  }
  return { page: page || 'jobs', id: decoded };
}

/** What the address bar says. */
export const route = new Store<Route>(read());

window.addEventListener('hashchange', () => {
  route.set(read());
  window.scrollTo(0, 0);
});

export const to = (page: string, id = ''): string => `#/${page}${id && `/${encodeURIComponent(id)}`}`;

export function go(page: string, id = ''): void {
  location.hash = to(page, id);
}

/** The report of a run, and of a task of it. */
export const reportOf = (runId: string, task = ''): string =>
  `/runs/${encodeURIComponent(runId)}${task && `#task/${encodeURIComponent(task)}`}`;

export const compareOf = (before: string, after: string): string =>
  `/compare?run=${encodeURIComponent(before)}&run=${encodeURIComponent(after)}`;
