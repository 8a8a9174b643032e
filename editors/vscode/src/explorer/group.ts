import * as vscode from 'vscode';

/**
 * One run of the Test Explorer, which shows one or several runs of the daemon: a selection can need
 * one for each suite. It is over when it is sealed and all of its runs are over.
 */
export class RunGroup {
  private readonly open = new Set<string>();
  private sealed = false;
  private over = false;

  constructor(readonly test: vscode.TestRun, readonly token: vscode.CancellationToken, private readonly ended: () => void) {}

  add(runId: string): void {
    this.open.add(runId);
  }

  done(runId: string): void {
    this.open.delete(runId);
    this.endWhenDone();
  }

  /** No more runs will be added. */
  seal(): void {
    this.sealed = true;
    this.endWhenDone();
  }

  get runIds(): string[] {
    return [...this.open];
  }

  private endWhenDone(): void {
    if (this.sealed && this.open.size === 0 && !this.over) {
      this.over = true;
      this.test.end();
      this.ended();
    }
  }
}

/** Links a run that the Test Explorer started to its group. */
export class Origin {
  constructor(
    readonly group: RunGroup,
    /** The trial that was selected alone. */
    readonly trial?: number,
  ) {}
}
