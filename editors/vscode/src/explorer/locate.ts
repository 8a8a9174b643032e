/**
 * Returns the line, from 0, where a file declares the grader of that name. It searches first from
 * the line `from` on, which is in the task, then anywhere above. It returns undefined if the file
 * does not declare it, as for a grader without a name.
 */
export function graderLine(text: string, grader: string, from = 0): number | undefined {
  const lines = text.split(/\r?\n/);
  const declares = new RegExp(`^\\s*(?:-\\s+)?(?:\\{\\s*)?(?:name|id):\\s*(["']?)${escape(grader)}\\1\\s*(?:[,}#].*)?$`);
  const inFlow = new RegExp(`[{,]\\s*name:\\s*(["']?)${escape(grader)}\\1\\s*[,}]`);
  const at = (line: string): boolean => declares.test(line) || inFlow.test(line);
  const below = lines.findIndex((line, i) => i > from && at(line));
  if (below >= 0) {
    return below;
  }
  const above = lines.findIndex((line, i) => i < from && at(line));
  return above >= 0 ? above : undefined;
}

function escape(s: string): string {
  return s.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
