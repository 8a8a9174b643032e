/** The oldest waza that serves this extension. */
export const minimumVersion = '0.1.0';

/** What `waza version --json` prints, as far as it is read. */
export interface VersionInfo {
  version: string;
}

/** Reads what `waza version --json` printed; undefined when it is something else. */
export function parseVersion(stdout: string): VersionInfo | undefined {
  try {
    const parsed: unknown = JSON.parse(stdout);
    if (typeof parsed === 'object' && parsed !== null && 'version' in parsed && typeof parsed.version === 'string') {
      return { version: parsed.version };
    }
  } catch {
    // Not waza, whatever it is.
  }
  return undefined;
}

/**
 * Whether a version is new enough. One that somebody built from the sources,
 * "(devel)" or v0.0.0-…, is taken at its word.
 */
export function isSupported(version: string, minimum = minimumVersion): boolean {
  const have = numbers(version);
  const want = numbers(minimum);
  if (!have || !want || have.every((n) => n === 0)) {
    return true;
  }
  for (const [i, n] of want.entries()) {
    const h = have[i] ?? 0;
    if (h !== n) {
      return h > n;
    }
  }
  // 0.1.0-rc.1 comes before 0.1.0.
  return !/^v?\d+\.\d+\.\d+-/.test(version) || minimum.includes('-');
}

function numbers(version: string): number[] | undefined {
  return /^v?(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number);
}
