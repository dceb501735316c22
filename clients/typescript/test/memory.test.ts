/** What an instance remembers is bounded, whoever comes. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { InstanceWindows } from "../dist/limits/instance.js";
import { Memory, memoryKey } from "../dist/memory.js";

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

test("one entry too many drops the first, however often it was used", () => {
  const memory = new Memory<number>();
  for (let number = 0; number < 10_000; number++) memory.put(`${number}`, 100, number);
  assert.equal(memory.get("0", 1), 0);
  memory.put("0", 200, 7);
  assert.equal(memory.get("0", 150), 7);
  memory.put("10000", 100, 10_000);
  assert.deepEqual([memory.size, memory.get("0", 1), memory.get("1", 1)], [10_000, undefined, 1]);
});

test("an entry that has ended is gone, and new if it comes again", () => {
  const memory = new Memory<number>();
  memory.put("old", 100, 1);
  for (let number = 1; number < 10_000; number++) memory.put(`${number}`, 1000, number);
  assert.deepEqual([memory.get("old", 99), memory.get("old", 100), memory.size], [1, undefined, 9999]);
  memory.put("old", 1000, 2);
  memory.put("another", 1000, 3);
  assert.deepEqual([memory.get("old", 100), memory.get("1", 100)], [2, undefined]);
});

test("a million take no more room than ten thousand", () => {
  const nowMs = 1_764_460_800_000;
  const windows = new InstanceWindows(() => nowMs);
  const memory = new Memory<object>();
  const fill = (from: number, to: number) => {
    for (let number = from; number < to; number++) {
      const key = `a-key-as-long-as-those-of-callers-are-${number}`;
      memory.put(key, nowMs, { number });
      windows.hit([{ key, windows: [{ limit: 5, periodMs: 60_000 }] }]);
    }
    collect();
    return process.memoryUsage().heapUsed;
  };
  const full = fill(0, 20_000);
  const flooded = fill(20_000, 1_000_000);
  assert.deepEqual([memory.size, windows.size], [10_000, 10_000]);
  // They take about 5 MiB; keeping everything would take over 300.
  assert(flooded - full < 8 * 1024 * 1024, `${full} bytes grew to ${flooded}`);
});

test("keys are of one size, do not run into each other, and give nothing away", async () => {
  const texts = [["a", "b:c"], ["a:b", "c"], ["a", "b", "c"], ["ab:c"], ["ab:c", ""], ["x".repeat(100_000)]];
  const keys = await Promise.all(texts.map((parts) => memoryKey(...parts)));
  assert.equal(new Set(keys).size, texts.length);
  for (const key of keys) assert.match(key, /^[\w-]{43}$/);
});

test("fixed windows of an instance: aligned, all or none, each at its own pace", () => {
  let nowMs = 3_600_000;
  const windows = new InstanceWindows(() => nowMs);
  const asked = [
    { limit: 2, periodMs: 1000 },
    { limit: 3, periodMs: 60_000 },
  ];
  const hit = (key = "a") => windows.hit([{ key, windows: asked }])?.retryAfterMs ?? "counted";
  const table: [number, number | "counted"][] = [
    [0, "counted"],
    [999, "counted"],
    [999, 1],
    [1000, "counted"],
    [1001, 58_999],
    [59_999, 1],
    [60_000, "counted"],
  ];
  for (const [at, expected] of table) {
    nowMs = 3_600_000 + at;
    assert.equal(hit(), expected, `${at}`);
  }
  assert.equal(hit("b"), "counted");
  const never = windows.hit([
    {
      key: "c",
      windows: [
        { limit: 0, periodMs: 1000 },
        { limit: 1, periodMs: 60_000 },
      ],
    },
  ]);
  assert.equal(never?.retryAfterMs, 60_000, "waiting does not help: the longest end");
});
