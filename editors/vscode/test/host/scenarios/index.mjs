// All scenarios, by the windows they play in.

import { diagnostics } from './diagnostics.mjs';
import { explorer } from './explorer.mjs';
import { panel } from './panel.mjs';
import { recovery } from './recovery.mjs';
import { trust } from './trust.mjs';

export const stages = [
  { name: 'window', options: {}, scenarios: [...explorer, ...panel, ...diagnostics, ...recovery] },
  { name: 'untrusted', options: { trust: true }, scenarios: trust },
];
