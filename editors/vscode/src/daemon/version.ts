/** The oldest waza that works with this extension. */
export const minimumVersion = '0.1.0';

/** The part of the output of `waza version --json` that the extension reads. */
export interface VersionInfo {
  version: string;
}

/** Parses the output of `waza version --json`; undefined if it is something else. */
export function parseVersion(stdout: string): VersionInfo | undefined {
  try {
    const parsed: unknown = JSON.parse(stdout);
    if (typeof parsed === 'object' && parsed !== null && 'version' in parsed && typeof parsed.version === 'string') {
      return { version: parsed.version };
    }
  } catch {
    // Not waza.
  }
  return undefined;
}

/**
 * Reports whether a version is new enough. A version built from the sources, "(devel)" or v0.0.0-…,
 * always counts as new enough.
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
