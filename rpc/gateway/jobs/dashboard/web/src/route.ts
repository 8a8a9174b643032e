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
    // the page shows the raw id
  }
  return { page: page || 'jobs', id: decoded };
}

/** The route in the address bar. */
export const route = new Store<Route>(read());

window.addEventListener('hashchange', () => {
  route.set(read());
  window.scrollTo(0, 0);
});

export const to = (page: string, id = ''): string => `#/${page}${id && `/${encodeURIComponent(id)}`}`;

export function go(page: string, id = ''): void {
  location.hash = to(page, id);
}

/** The path of the report of a run, or of one of its tasks. */
export const reportOf = (runId: string, task = ''): string =>
  `/runs/${encodeURIComponent(runId)}${task && `#task/${encodeURIComponent(task)}`}`;

export const compareOf = (before: string, after: string): string =>
  `/compare?run=${encodeURIComponent(before)}&run=${encodeURIComponent(after)}`;
