import * as vscode from 'vscode';
import type { Outcome } from '../model/format';

/** Icons of the Test Explorer, so that a verdict looks the same everywhere. */
const icons: Record<Outcome, [icon: string, color?: string]> = {
  running: ['loading~spin', 'testing.runAction'],
  passed: ['pass', 'testing.iconPassed'],
  failed: ['error', 'testing.iconFailed'],
  error: ['warning', 'testing.iconErrored'],
  cancelled: ['circle-slash', 'testing.iconSkipped'],
  interrupted: ['debug-disconnect', 'testing.iconQueued'],
  review: ['eye', 'charts.blue'],
  none: ['circle-outline', 'testing.iconUnset'],
};

export function iconOf(outcome: Outcome): vscode.ThemeIcon {
  const [icon, color] = icons[outcome];
  return new vscode.ThemeIcon(icon, color === undefined ? undefined : new vscode.ThemeColor(color));
}
