/** Route limits in real frameworks, on the real server. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import {
  expressRouteLimit,
  fastifyRouteLimit,
  type LimitOptions,
  RouteLimiter,
  withRouteLimit,
} from "@tidegate/client";
import express from "express";
import fastify from "fastify";
import { ADDRESS, healthy, SILENT } from "./conditions.js";

async function limiter(
  t: TestContext,
  more: Pick<LimitOptions<never, never>, "mode"> = {},
): Promise<RouteLimiter> {
  const windows = [{ limit: 2, periodMs: 3_600_000 }];
  return new RouteLimiter({ guard: await healthy(t, "proxy"), scope: "api", log: SILENT, windows, ...more });
}

/** Two calls pass, the third is refused with everything that a refusal carries. */
async function checkRefusal(call: () => Promise<Response>): Promise<void> {
  for (const _ of [1, 2]) {
    const answer = await call();
    assert.deepEqual([answer.status, await answer.text()], [200, "hello"]);
  }
  const refused = await call();
  assert.equal(refused.status, 429);
  assert.match(refused.headers.get("content-type") ?? "", /^application\/json/);
  const wait = Number(refused.headers.get("retry-after"));
  assert(wait >= 1 && wait <= 7200);
  assert.equal(refused.headers.get("ratelimit-policy"), '"1h";q=2;w=3600');
  assert.equal(refused.headers.get("ratelimit"), `"1h";r=0;t=${wait}`);
  const { error } = (await refused.json()) as { error: Record<string, unknown> };
  assert.deepEqual([error.code, error.message], ["rate_limited", "too many requests"]);
  assert.equal(Math.ceil(Number(error.retry_after_ms) / 1000), wait);
}

test("the fetch API", async (t) => {
  const handler = withRouteLimit(
    await limiter(t),
    (request: Request, env: { from: string }) => ({ address: request.headers.get(env.from) }),
    () => new Response("hello"),
  );
  const request = () => new Request("https://app.example", { headers: { "x-client": ADDRESS } });
  await checkRefusal(() => handler(request(), { from: "x-client" }));
});

test("Express", async (t) => {
  const app = express();
  app.use(expressRouteLimit(await limiter(t)));
  app.get("/", (_, response) => void response.send("hello"));
  await checkRefusal(await serving(t, app));
});

test("node:http, where a hook of the application fails", async (t) => {
  const broken = expressRouteLimit(await limiter(t), () => {
    throw new Error("no address");
  });
  const call = await serving(t, (request, response) => {
    broken(
      { ...(request.socket.remoteAddress ? { ip: request.socket.remoteAddress } : {}) },
      response,
      (error) => {
        response.statusCode = error === undefined ? 200 : 500;
        response.end();
      },
    );
  });
  assert.equal((await call()).status, 500);
});

test("Fastify", async (t) => {
  const app = fastify();
  app.addHook("onRequest", fastifyRouteLimit(await limiter(t)));
  app.get("/", async () => "hello");
  t.after(() => app.close());
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  await checkRefusal(() => fetch(url));
});

test("observe refuses nobody", async (t) => {
  const app = express();
  app.use(expressRouteLimit(await limiter(t, { mode: "observe" })));
  app.get("/", (_, response) => void response.send("hello"));
  const call = await serving(t, app);
  for (const _ of [1, 2, 3, 4]) assert.equal((await call()).status, 200);
});

async function serving(
  t: TestContext,
  app: Parameters<typeof createServer>[1] & object,
): Promise<() => Promise<Response>> {
  const server = createServer(app).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return () => fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
}
