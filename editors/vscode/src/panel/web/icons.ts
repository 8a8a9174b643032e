// Icons of the bar, drawn as lines in a square of 16, like those of VS Code.

export const icons = {
  history: 'M2.6 8a5.4 5.4 0 1 0 1.7-3.9M2.5 2.6v2.2h2.3M8 5v3.2l2.2 1.3',
  compare: 'M5.5 2.5v11M10.5 2.5v11M2.5 5 5.5 2.5 8.3 5M7.7 11l2.8 2.5 3-2.5',
  close: 'm4 4 8 8m0-8-8 8',
  stop: 'M4 4h8v8H4z',
  resume: 'M3.5 3v10M6.5 3.2v9.6L13 8z',
  rerun: 'M13.2 8A5.2 5.2 0 1 1 11.5 4.1M13.3 2.4v2.3H11',
  rerunFailed: 'M12.9 6.2A5.2 5.2 0 1 0 9 13.1M13.3 2.4v2.9h-2.8M10.5 10.5l3.4 3.4m0-3.4-3.4 3.4',
  browser: 'M6.5 3H3v10h10V9.5M9 3h4v4M12.8 3.2 7.5 8.5',
  export: 'M8 2v7.6M5 6.8l3 3 3-3M2.8 10.5V13h10.4v-2.5',
  down: 'm4.5 6.3 3.5 3.5 3.5-3.5',
} as const;
