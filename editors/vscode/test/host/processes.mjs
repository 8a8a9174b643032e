// Processes that the tests started, found with ps. None must remain, whatever the
// result of the tests.

import { execFileSync } from 'node:child_process';

// list returns all processes of this machine.
function list() {
  const out = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,pgid=,stat=,args='], { encoding: 'utf8', maxBuffer: 1 << 26 });
  return out
    .split('\n')
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line))
    .filter((m) => m && !m[4].startsWith('Z'))
    .map((m) => ({ pid: Number(m[1]), parent: Number(m[2]), group: Number(m[3]), args: m[5] }));
}

// below returns the processes that root started, directly or indirectly.
export function below(root) {
  const all = list();
  const found = [];
  const visit = (parent) => {
    for (const p of all.filter((p) => p.parent === parent)) {
      found.push(p);
      visit(p.pid);
    }
  };
  visit(root);
  return found;
}

// Watch remembers the process groups of everything that a process has started, even
// after they lost their parent. It excludes the group of this program.
export class Watch {
  constructor(root) {
    this.root = root;
    this.groups = new Set();
    this.own = list().find((p) => p.pid === process.pid).group;
  }

  // look must be called while the root is alive.
  look() {
    for (const p of [...below(this.root), { group: this.root }]) if (p.group !== this.own) this.groups.add(p.group);
    return this;
  }

  left() {
    return list().filter((p) => this.groups.has(p.group));
  }

  // end kills all remaining processes and returns them.
  end() {
    const left = this.left();
    for (const p of left) kill(p.pid, 'SIGKILL');
    return left;
  }
}

// kill sends a signal to a process, or to its group if the id is negative. It ignores
// processes that have already ended.
export function kill(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch (e) {
    if (e.code !== 'ESRCH') throw e;
  }
}

// until polls until it gets a result, because nothing reports the end of a process that
// is not a child of this one.
export async function until(what, seconds, ask) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`${what}: not within ${seconds} s`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
