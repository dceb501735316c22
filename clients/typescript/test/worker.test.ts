/** The client on Workers: in workerd, against the real server. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Miniflare } from "miniflare";
import { ADDRESS, environment } from "./conditions.js";
import { startServer } from "./server.js";

test("a login behind a route limit, healthy, and while the store is stopped", async (t) => {
  const server = await startServer(t);
  const root = fileURLToPath(new URL("..", import.meta.url));
  const worker = new Miniflare({
    rootPath: root,
    modulesRoot: root,
    scriptPath: "test/worker/worker.js",
    modules: true,
    modulesRules: [{ type: "ESModule", include: ["**/*.js"] }],
    compatibilityDate: "2025-09-01",
    bindings: environment(server.url) as Record<string, string>,
  });
  t.after(() => worker.dispose());
  const login = async (password: string, address = ADDRESS) => {
    const answer = await worker.dispatchFetch("https://app.example/login", {
      method: "POST",
      headers: { "cf-connecting-ip": address },
      body: JSON.stringify({ user: "alice", password }),
    });
    return `${answer.status} ${answer.headers.get("retry-after") !== null} ${await answer.text()}`;
  };
  assert.equal(await login("right"), "200 false refunded");
  assert.deepEqual([await login("guess"), await login("guess")], ["401 false wrong", "401 false wrong"]);
  assert.match(await login("guess"), /^429 true .*attempts_spent/);
  // Another call of the same isolate, at once: no call waits for another one's promise.
  const others = ["198.51.100.1", "198.51.100.2", "198.51.100.3"].map((address) => login("guess", address));
  for (const answer of await Promise.all(others)) assert.match(answer, /^429 true .*attempts_spent/);
  await server.control("stop", {});
  assert.match(await login("right", "198.51.100.4"), /^503 true .*unavailable/);
});
