/** What the README says, run as it stands there, against the real server. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { ADDRESS, environment } from "./conditions.js";
import { startServer } from "./server.js";

test("the programs of the README", async (t) => {
  const server = await startServer(t);
  Object.assign(process.env, environment(server.url), {
    TIDEGATE_CLIENT_REPLAY_LEGACY_UNTIL: new Date(Date.now() + 60_000).toISOString(),
  });

  const { login } = await import("./readme/login.js");
  const statuses = [];
  for (const password of ["correct horse battery staple", ..."guess!"]) {
    statuses.push((await login("alice", password, ADDRESS)).status);
  }
  assert.deepEqual(statuses, [200, 401, 401, 401, 401, 401, 429]);

  const { check } = await import("./readme/limits.js");
  assert.deepEqual(await check(ADDRESS), ["allowed", "allowed", "allowed"]);

  const { expressApp, fastifyApp, handler } = await import("./readme/frameworks.js");
  const listening = createServer(expressApp).listen(0, "127.0.0.1");
  await new Promise((resolve) => listening.once("listening", resolve));
  t.after(() => listening.close());
  const { port } = listening.address() as AddressInfo;
  const url = await fastifyApp.listen({ host: "127.0.0.1", port: 0 });
  t.after(() => fastifyApp.close());
  const request = () => new Request("https://app.example", { headers: { "cf-connecting-ip": ADDRESS } });
  const calls = [() => fetch(`http://127.0.0.1:${port}/`), () => fetch(url), () => handler(request())];
  for (const call of calls) {
    const answers = [await call(), await call(), await call()];
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 429],
    );
  }
  listening.closeAllConnections();

  const { claimJob } = await import("./readme/client.js");
  assert.deepEqual([await claimJob("42", ADDRESS), await claimJob("42", ADDRESS)], ["mine", "taken by me"]);

  const { decisions, limiter } = await import("./readme/hooks.js");
  await limiter.check({ address: "192.0.2.9" });
  assert.deepEqual(
    decisions.map(({ limit, scope, outcome, from }) => [limit, scope, outcome, from]),
    [["route", "api", "allowed", "store"]],
  );

  const { fence } = await import("./readme/cutover.js");
  const claim = (token: string) =>
    fence.claim({ token, expiresAtMs: Date.now() + 60_000, address: ADDRESS, principal: "user_42" });
  assert.deepEqual([(await claim("token-0")).allowed, (await claim("token-9")).allowed], [false, true]);
  await server.control("stop", {});
  assert.equal(await claimJob("43", ADDRESS), "stopped");
});
