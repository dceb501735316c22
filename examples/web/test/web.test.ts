/** The whole application beside the real server, over HTTP. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { start } from "./processes.js";

const RIGHT = "correct horse battery staple";

interface Answer {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly body: { access?: string; refresh?: string; rows?: unknown[]; error?: { code?: string } };
}

test("login, refresh tokens and download, healthy and while everything is stopped", async (t) => {
  const { url, control } = await start(t);
  const ask = async (path: string, init?: RequestInit): Promise<Answer> => {
    const answer = await fetch(url + path, init);
    const body = (await answer.json()) as Answer["body"];
    return { status: answer.status, retryAfter: answer.headers.get("retry-after"), body };
  };
  const post = (path: string, body: object) => ask(path, { method: "POST", body: JSON.stringify(body) });
  const login = (password: string, user = "alice@example.com") => post("/login", { user, password });
  const refresh = (token: string | undefined) => post("/refresh", { refresh: token });
  const download = (headers: Record<string, string>) => ask("/download", { headers });

  const { access, refresh: first } = (await login(RIGHT)).body;
  const bearer = { authorization: `Bearer ${access}` };

  await t.test("a refresh token is good for one use, and for asking again at once", async () => {
    const next = await refresh(first);
    assert.equal(next.status, 200);
    const again = await refresh(first);
    assert.equal(again.status, 200);
    // Both have the same token to follow: it is used once, whichever of the two is shown.
    const uses = await Promise.all([next, again].map(({ body }) => refresh(body.refresh)));
    assert.deepEqual(
      uses.map(({ status }) => status),
      [200, 200],
    );
    assert.equal(idOf(uses[0]?.body.refresh), idOf(uses[1]?.body.refresh));
    assert.notEqual(idOf(next.body.refresh), idOf(first));
    for (const none of [undefined, "", `${first}x`, access]) assert.equal((await refresh(none)).status, 401);
  });

  await t.test("a download needs a session and a challenge, which clears it for the next ones", async () => {
    const forged = `Bearer ${access?.slice(0, -3)}AAA`;
    for (const headers of [
      {},
      { authorization: forged },
      { authorization: forged, "x-challenge-answer": "42" },
    ]) {
      const refused = await download(headers as Record<string, string>);
      assert.deepEqual([refused.status, refused.body.error?.code], [401, "unauthenticated"]);
    }
    assert.equal((await download(bearer)).body.error?.code, "challenge_required");
    assert.equal((await download({ ...bearer, "x-challenge-answer": "41" })).status, 403);
    const cleared = await download({ ...bearer, "x-challenge-answer": "42" });
    assert.deepEqual([cleared.status, cleared.body.rows?.length], [200, 1000]);
    assert.equal((await download(bearer)).status, 200);
  });

  await t.test("a right password costs no attempt, five wrong ones are the last", async () => {
    for (let time = 0; time < 6; time++)
      assert.equal((await login(RIGHT, " Alice@Example.com ")).status, 200);
    for (let time = 0; time < 5; time++) assert.equal((await login("a guess")).status, 401);
    const spent = await login(RIGHT, "ALICE@example.com");
    assert.deepEqual([spent.status, spent.body.error?.code], [429, "attempts_spent"]);
    assert(Number(spent.retryAfter) > 800);
    assert.equal((await login("a guess", "bob@example.com")).status, 401);
  });

  await t.test("while everything is stopped what must be shut is, and the rest goes on", async () => {
    await control("stop");
    const shut = [await login(RIGHT, "carol@example.com"), await refresh(first), await download(bearer)];
    for (const { status, retryAfter } of shut) assert.deepEqual([status, retryAfter], [503, "30"]);
    assert.equal((await ask("/")).status, 200);
    await control("resume");
    assert.equal((await login("a guess", "carol@example.com")).status, 401);
  });

  await t.test("a route has its windows", async () => {
    let refused = false;
    for (let calls = 0; calls < 300 && !refused; calls += 10) {
      const answers = await Promise.all(Array.from({ length: 10 }, () => ask("/")));
      refused = answers.some(({ status, retryAfter }) => status === 429 && retryAfter !== null);
    }
    assert(refused, "300 calls in a minute passed");
  });
});

function idOf(token: string | undefined): unknown {
  return JSON.parse(Buffer.from(token?.split(".")[0] ?? "", "base64url").toString()).id;
}
