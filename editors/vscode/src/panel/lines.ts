/**
 * Finds the line, from 1, where something of that name is declared in YAML, at
 * or below the line `from`, else above it; undefined when there is none.
 */
export function lineOfName(text: string, name: string, from: number): number | undefined {
  const quoted = name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  const declares = new RegExp(`(?:^|[\\s{,-])name\\s*:\\s*(["']?)${quoted}\\1\\s*(?:[,}#]|$)`);
  const lines = text.split(/\r?\n/);
  const after = lines.findIndex((line, i) => i >= from - 1 && declares.test(line));
  const any = after >= 0 ? after : lines.findIndex((line) => declares.test(line));
  return any < 0 ? undefined : any + 1;
}

/** A glob that matches just this id. */
export function globOf(id: string): string {
  return id.replace(/[\\*?[\]{}!]/g, '\\$&');
}
