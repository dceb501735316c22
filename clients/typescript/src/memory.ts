/** What an instance remembers: bounded, and under keys that give nothing away. */

import { base64url } from "./base64url.js";
import { MEMORY_ENTRIES_MAX } from "./bounds.js";
import { Hmac } from "./hmac.js";

/** A map of at most 10 000 entries, each with an end. The one that was inserted first makes room, however
 * often it was used. */
export class Memory<V> {
  readonly #entries = new Map<string, Entry<V>>();
  // The order is kept beside the map: asking a map for its first key steps over all that were deleted.
  #oldest: Entry<V> | undefined;
  #newest: Entry<V> | undefined;

  get size(): number {
    return this.#entries.size;
  }

  /** What is remembered and has not ended. */
  get(key: string, nowMs: number): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.endsAtMs > nowMs) return entry?.value;
    // If it comes again it is a new one, and must not keep its place in the order.
    this.#remove(entry);
    return undefined;
  }

  /** Remembers a value until its end. One that is known keeps its age. */
  put(key: string, endsAtMs: number, value: V): void {
    const known = this.#entries.get(key);
    if (known !== undefined) {
      known.endsAtMs = endsAtMs;
      known.value = value;
      return;
    }
    if (this.#entries.size >= MEMORY_ENTRIES_MAX && this.#oldest !== undefined) this.#remove(this.#oldest);
    const entry: Entry<V> = { key, endsAtMs, value, older: this.#newest, newer: undefined };
    if (this.#newest === undefined) this.#oldest = entry;
    else this.#newest.newer = entry;
    this.#newest = entry;
    this.#entries.set(key, entry);
  }

  #remove({ key, older, newer }: Entry<V>): void {
    this.#entries.delete(key);
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
  }
}

interface Entry<V> {
  readonly key: string;
  endsAtMs: number;
  value: V;
  older: Entry<V> | undefined;
  newer: Entry<V> | undefined;
}

/** A key of 43 characters for texts of any length, none of which runs into the next. It means nothing outside
 * of this process, and no token or identity stays in memory for it. */
export async function memoryKey(...texts: readonly string[]): Promise<string> {
  // Made at the first use, since Workers give no random bytes before the first request.
  processKey ??= new Hmac(base64url(crypto.getRandomValues(new Uint8Array(32))));
  return base64url(await processKey.of(new TextEncoder().encode(JSON.stringify(texts))));
}

let processKey: Hmac | undefined;
