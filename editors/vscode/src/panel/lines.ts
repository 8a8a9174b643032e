/**
 * Finds the line, from 1, where YAML declares something of that name, at or below the line `from`,
 * else above it; undefined if it has none.
 */
export function lineOfName(text: string, name: string, from: number): number | undefined {
  const quoted = name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  const declares = new RegExp(`(?:^|[\\s{,-])name\\s*:\\s*(["']?)${quoted}\\1\\s*(?:[,}#]|$)`);
  const lines = text.split(/\r?\n/);
  const after = lines.findIndex((line, i) => i >= from - 1 && declares.test(line));
  const any = after >= 0 ? after : lines.findIndex((line) => declares.test(line));
  return any < 0 ? undefined : any + 1;
}
