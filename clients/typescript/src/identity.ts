/** Names and identities as the server sees them: keyed digests, made here. */

import { base64url } from "./base64url.js";
import type { Hmac } from "./hmac.js";

/** What a digest stands for. Purposes keep equal values apart. */
export type Purpose = "partition" | "key" | "source" | "network" | "principal";

/** 43 base64url characters: a keyed hash of a name or an identity. */
export type Digest = string & { readonly [brand]: "digest" };
declare const brand: unique symbol;

/** What stands for `value` on the server. The exact characters count; nothing is folded or trimmed. */
export async function digest(pepper: Hmac, purpose: Purpose, value: string): Promise<Digest> {
  return base64url(await pepper.of(new TextEncoder().encode(`${purpose}\0${value}`))) as Digest;
}
