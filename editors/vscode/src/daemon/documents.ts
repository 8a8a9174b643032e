import * as vscode from 'vscode';
import type { DocumentSelector } from 'vscode-languageclient';

/** File names of suites, as `waza list` searches for them. */
export const suiteGlob = '**/{eval,eval.*,eval-*,*.eval}.{yaml,yml}';

const suiteName = /^(eval|eval[.-][\p{L}\p{N}_-]+|[\p{L}\p{N}_-]+\.eval)\.ya?ml$/u;

const workflows = /\/\.(github|gitea|forgejo)\/workflows\//;

/** Reports whether a file is a suite by its name, and not a workflow by its directory. */
export function isSuiteFile(uri: vscode.Uri): boolean {
  return uri.scheme === 'file' && suiteName.test(uri.path.slice(uri.path.lastIndexOf('/') + 1)) && !workflows.test(uri.path);
}

/** Selects waza's documents. It excludes other YAML files, so that they cost nothing. */
export function documentSelector(taskFiles: readonly string[]): DocumentSelector {
  return [suiteGlob, ...taskFiles].map((pattern) => ({ scheme: 'file', language: 'yaml', pattern }));
}

/** Watches files whose changes can affect the findings of an open suite. */
export function watchedFiles(): vscode.FileSystemWatcher[] {
  return ['**/*.{yaml,yml}', '**/SKILL.md'].map((glob) => vscode.workspace.createFileSystemWatcher(glob));
}
