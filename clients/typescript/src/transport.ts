/** Signed requests over `fetch`, each sent once. */

import { ANSWER_BYTES_MAX, CALLS_MAX } from "./bounds.js";
import { GuardUnavailable } from "./error.js";
import type { Hmac } from "./hmac.js";
import { SIGNATURE_HEADER, sign } from "./signature.js";
import { within } from "./within.js";

/** The part of `fetch` that is used, so that a Worker's service binding or a test can stand in. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** An answer as it came. */
export interface RawAnswer {
  readonly status: number;
  readonly text: string;
}

/** Where RPCs go, and how. */
export class Transport {
  readonly #origin: string;
  readonly #secret: Hmac;
  readonly #fetch: Fetch;
  readonly #timeoutMs: number;
  #underWay = 0;

  constructor(origin: string, secret: Hmac, fetch: Fetch, timeoutMs: number) {
    this.#origin = origin;
    this.#secret = secret;
    this.#fetch = fetch;
    this.#timeoutMs = timeoutMs;
  }

  /** Sends `body`, once. The time-out spans the whole exchange, and what comes after it is dropped. */
  async post(body: Uint8Array<ArrayBuffer>): Promise<RawAnswer> {
    if (this.#underWay >= CALLS_MAX)
      throw new GuardUnavailable("unavailable", "too many calls are under way");
    this.#underWay++;
    try {
      return await within(this.#timeoutMs, (signal) => this.#exchange(body, signal));
    } catch (cause) {
      if (cause instanceof GuardUnavailable) throw cause;
      throw new GuardUnavailable("transport", `no connection: ${chain(cause)}`, { cause });
    } finally {
      this.#underWay--;
    }
  }

  async #exchange(body: Uint8Array<ArrayBuffer>, signal: AbortSignal): Promise<RawAnswer> {
    const answer = await this.#fetch(this.#origin + PATH, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        [SIGNATURE_HEADER]: await sign(this.#secret, Date.now(), "POST", PATH, body),
      },
      body,
      // A redirect would carry the signed request elsewhere.
      redirect: "manual",
      signal,
    });
    return { status: answer.status, text: await wholeText(answer) };
  }
}

/** An error and what lies beneath it, in one line: runtimes hide the reason of a failed `fetch` there. */
function chain(error: unknown, depth = 0): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { code?: unknown };
  const text = error.message || (typeof code === "string" ? code : error.name);
  return error.cause === undefined || depth >= 4 ? text : `${text}: ${chain(error.cause, depth + 1)}`;
}

async function wholeText(answer: Response): Promise<string> {
  const decoder = new TextDecoder();
  const reader = answer.body?.getReader();
  let [text, bytes] = ["", 0];
  for (let chunk = await reader?.read(); chunk && !chunk.done; chunk = await reader?.read()) {
    bytes += chunk.value.byteLength;
    if (bytes > ANSWER_BYTES_MAX) {
      await reader?.cancel();
      throw new GuardUnavailable("transport", "what answered is no guard store");
    }
    text += decoder.decode(chunk.value, { stream: true });
  }
  return text + decoder.decode();
}

/** Scheme and authority of a URL that RPCs may go to: https, or http to this machine. Else why not. */
export function readOrigin(
  url: string | undefined,
): { origin: string; fault?: undefined } | { origin?: undefined; fault: string } {
  if (url === undefined || url === "") return { fault: "the URL is missing" };
  const parsed = /^https?:\/\/[^/?#@\\\s]+\/?$/i.test(url) ? parse(url) : undefined;
  if (parsed === undefined) return { fault: "the URL must be an origin, such as https://guard.example:8787" };
  if (parsed.protocol === "http:" && !isThisMachine(parsed.hostname)) {
    return { fault: "the URL must be https, or http to this machine: others must not read what is sent" };
  }
  return { origin: parsed.origin };
}

function parse(url: string): URL | undefined {
  try {
    return new URL(url);
  } catch {
    return undefined;
  }
}

/** The host is canonical, as `URL` writes it: `127.1` has become `127.0.0.1`. */
function isThisMachine(host: string): boolean {
  return (
    host === "localhost" ||
    host === "[::1]" ||
    /^(127(\.\d+){3}|\[::ffff:7f[\da-f]{2}:[\da-f]+\])$/.test(host)
  );
}

const PATH = "/v1/rpc";
