/** What proves to the server who sends a request. */

import type { Hmac } from "./hmac.js";

/** The header of the signature. */
export const SIGNATURE_HEADER = "tidegate-signature";

/** The signature of exactly these bytes at `t_ms`, unix time. */
export async function sign(
  secret: Hmac,
  tMs: number,
  method: string,
  path: string,
  body: Uint8Array,
): Promise<string> {
  const head = new TextEncoder().encode(`v1\n${tMs}\n${method}\n${path}\n`);
  const message = new Uint8Array(head.length + body.length);
  message.set(head);
  message.set(body, head.length);
  return `t=${tMs},v1=${hex(await secret.of(message))}`;
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
