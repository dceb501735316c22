/** Which families go where, as the environment says. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { type ClientEnvironment, GuardClient, Selection } from "@tidegate/client";
import { environment, SILENT } from "./conditions.js";
import { PEPPER, SECRET } from "./server.js";

const complete = environment("https://guard.example");
const families = ["offline", "replay", "proxy", "password"] as const;

/** Where a family goes: `guard`, `legacy`, or the reason of the error that each call gives. */
async function goes(env: ClientEnvironment): Promise<string[]> {
  const selection = new Selection(env, { log: SILENT, fetch: async () => new Response("", { status: 500 }) });
  return Promise.all(
    families.map(async (family) => {
      const guard = selection.guard(family);
      if (guard === "legacy") return guard;
      const steps = [{ partition: "p", commands: [{ cmd: "kv.get", key: "k" }] }] as const;
      const error = await guard
        .withFairness({})
        .run({ family, steps })
        .catch((error) => error);
      return error.reason === "transport" ? "guard" : error.reason;
    }),
  );
}

test("assigned but misconfigured is off, in every way of being misconfigured", async () => {
  const short = "x".repeat(31);
  const table: [ClientEnvironment, string][] = [
    [{}, "guard"],
    [{ TIDEGATE_CLIENT_FAIRNESS_PEPPER: PEPPER, TIDEGATE_CLIENT_TIMEOUT_MS: "100" }, "guard"],
    [
      { TIDEGATE_CLIENT_FAIRNESS_PEPPER: "", TIDEGATE_CLIENT_TIMEOUT_MS: "", TIDEGATE_CLIENT_BACKEND: "" },
      "guard",
    ],
    ...[undefined, "", "http://guard.example", "guard.example", "https://guard.example/v1"].map(
      (url): [ClientEnvironment, string] => [{ TIDEGATE_CLIENT_URL: url }, "configuration"],
    ),
    ...[undefined, "", short, ` ${SECRET}`, `${SECRET}\n`, "changeme".repeat(5)].flatMap(
      (text): [ClientEnvironment, string][] => [
        [{ TIDEGATE_CLIENT_SECRET: text }, "configuration"],
        [{ TIDEGATE_CLIENT_KEY_PEPPER: text }, "configuration"],
      ],
    ),
    [{ TIDEGATE_CLIENT_FAIRNESS_PEPPER: short }, "configuration"],
    [{ TIDEGATE_CLIENT_TIMEOUT_MS: "1s" }, "configuration"],
    [{ TIDEGATE_CLIENT_BACKEND: "Legacy" }, "configuration"],
    [{ TIDEGATE_CLIENT_BACKEND: "legacy" }, "legacy"],
    [{ TIDEGATE_CLIENT_BACKEND: "off" }, "off"],
    [{ TIDEGATE_CLIENT_BACKEND: "off", TIDEGATE_CLIENT_URL: "" }, "off"],
  ];
  for (const [change, expected] of table) {
    const env = { ...complete, ...change, TIDEGATE_CLIENT_FAMILIES: "replay,password" };
    const there = expected === "legacy" ? "legacy" : expected;
    assert.deepEqual(await goes(env), ["legacy", there, "legacy", there], JSON.stringify(change));
  }
  assert.deepEqual(await goes({}), Array(4).fill("legacy"));
});

test("faults and unknown families are told of once, without the value of a secret", () => {
  const warnings: string[] = [];
  const log = { warn: (text: string) => warnings.push(text), info: () => {} };
  const env = {
    ...complete,
    TIDEGATE_CLIENT_FAMILIES: "Proxy,proxy",
    TIDEGATE_CLIENT_SECRET: "marker-too-short",
  };
  const selections = [1, 2, 3].map(() => new Selection(env, { log }));
  assert.deepEqual(warnings, [
    "tidegate: TIDEGATE_CLIENT_FAMILIES names an unknown family, which is ignored: Proxy",
    "tidegate: the assigned families are off: TIDEGATE_CLIENT_SECRET has 16 characters; at least 32 are needed",
  ]);
  const shown = inspect(selections, { depth: null, showHidden: true }) + JSON.stringify(selections);
  assert(!shown.includes("marker"));
});

test("the environment is read once", () => {
  const env = { ...complete };
  const selection = new Selection(env, { log: SILENT });
  env.TIDEGATE_CLIENT_FAMILIES = "";
  assert(selection.guard("proxy") instanceof GuardClient);
});
