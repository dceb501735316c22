/** Fixed windows of this instance alone, aligned to the epoch. */

import type { Clock } from "../clock.js";
import { Memory } from "../memory.js";
import type { Refusal } from "../refusal.js";
import { refusalOf } from "./windows.js";

/** A subject, by its memory key, and the windows that it has. */
export interface Counted {
  readonly key: string;
  readonly windows: readonly { readonly limit: number; readonly periodMs: number }[];
}

/** Counts of at most 10 000 subjects. */
export class InstanceWindows {
  readonly #counts = new Memory<Count[]>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#counts.size;
  }

  /** Counts one in all windows of all subjects, or in none: then the refusal comes back. */
  hit(subjects: readonly Counted[]): Refusal | undefined {
    const nowMs = this.#clock();
    const asked = subjects.map((subject) => ({ subject, counts: this.#running(subject, nowMs) }));
    const states = asked.flatMap(({ subject, counts }) =>
      subject.windows.map(({ limit, periodMs }, index) => {
        const { used, endMs } = counts[index] ?? { used: 0, endMs: 0 };
        return { periodMs, limit, remaining: Math.max(0, limit - used), resetMs: endMs - nowMs };
      }),
    );
    const spent = states.filter(({ remaining }) => remaining === 0);
    if (spent.length > 0) {
      const canWait = spent.every(({ limit }) => limit > 0);
      return refusalOf(states, canWait ? Math.max(...spent.map(({ resetMs }) => resetMs)) : null);
    }
    for (const { subject, counts } of asked) {
      const charged = counts.map(({ used, endMs }) => ({ used: used + 1, endMs }));
      this.#counts.put(subject.key, Math.max(...charged.map(({ endMs }) => endMs)), charged);
    }
    return undefined;
  }

  #running({ key, windows }: Counted, nowMs: number): Count[] {
    const known = this.#counts.get(key, nowMs);
    return windows.map(({ periodMs }, index) => {
      const count = known?.[index];
      const endMs = (Math.floor(nowMs / periodMs) + 1) * periodMs;
      return count !== undefined && count.endMs > nowMs ? count : { used: 0, endMs };
    });
  }
}

interface Count {
  readonly used: number;
  readonly endMs: number;
}
