import { Store } from './net/store';

const KEY = 'waza.theme';
const dark = matchMedia('(prefers-color-scheme: dark)');

export type Theme = 'system' | 'light' | 'dark';
const NEXT: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };

function load(): Theme {
  try {
    const t = localStorage.getItem(KEY);
    return t === 'light' || t === 'dark' ? t : 'system';
  } catch {
    return 'system';
  }
}

/** The theme that the user chose. */
export const theme = new Store<Theme>(load());

/** The theme in use: light or dark. */
export const themed = new Store<'light' | 'dark'>('light');

export function applyTheme(): void {
  const t = theme.value === 'system' ? (dark.matches ? 'dark' : 'light') : theme.value;
  document.documentElement.dataset.theme = t;
  themed.set(t);
}

dark.addEventListener('change', applyTheme);

export function nextTheme(): void {
  theme.set(NEXT[theme.value]);
  try {
    localStorage.setItem(KEY, theme.value);
  } catch {
    // the choice applies to this page only
  }
  applyTheme();
}
