/** A period as the largest of `d h m s ms` that divides it: `15m`. It names the key of a window. */
export function periodText(periodMs: number): string {
  for (const [unit, unitMs] of UNITS) {
    if (periodMs % unitMs === 0) return `${periodMs / unitMs}${unit}`;
  }
  return `${periodMs}ms`;
}

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
] as const;
