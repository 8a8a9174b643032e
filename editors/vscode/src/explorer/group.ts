import * as vscode from 'vscode';

/**
 * One run of the Test Explorer, which shows one run of the daemon or several:
 * a selection may need one for each suite. It is over when it is sealed and
 * all of its runs are.
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

  /** No more runs come. */
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

/** What a run that the Test Explorer started knows its group by. */
export class Origin {
  constructor(
    readonly group: RunGroup,
    /** The trial that was asked for alone. */
    readonly trial?: number,
  ) {}
}
