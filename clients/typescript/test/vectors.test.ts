/** The vectors that every implementation of the protocol shares. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { networksOf, sourceOf } from "../dist/address.js";
import { Hmac } from "../dist/hmac.js";
import { digest, type Purpose } from "../dist/identity.js";
import { sign } from "../dist/signature.js";

const vectors: Vectors = JSON.parse(
  readFileSync(new URL("../../../protocol/vectors.json", import.meta.url), "utf8"),
);

test("signatures", async () => {
  for (const { name, secret, t_ms, method, path, body, header } of vectors.signatures) {
    const signed = await sign(new Hmac(secret), t_ms, method, path, new TextEncoder().encode(body));
    assert.equal(signed, header, name);
  }
});

test("digests", async () => {
  for (const vector of vectors.digests) {
    assert.equal(await digest(new Hmac(vector.pepper), vector.purpose, vector.value), vector.digest);
  }
});

test("sources and networks", () => {
  for (const { input, source, networks } of vectors.sources) {
    assert.equal(sourceOf(input), source, `${input}`);
    assert.deepEqual(networksOf(input), networks, `${input}`);
  }
});

interface Vectors {
  signatures: {
    name: string;
    secret: string;
    t_ms: number;
    method: string;
    path: string;
    body: string;
    header: string;
  }[];
  digests: { pepper: string; purpose: Purpose; value: string; digest: string }[];
  sources: { input: string | null; source: string; networks: { prefix: number; text: string }[] }[];
}
