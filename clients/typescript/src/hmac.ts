/** HMAC-SHA256 by Web Crypto, under a key that no inspection or JSON shows. */
export class Hmac {
  readonly #bytes: Uint8Array<ArrayBuffer>;
  #key: CryptoKey | undefined;

  constructor(secret: string) {
    this.#bytes = new TextEncoder().encode(secret);
  }

  /** The MAC of `message`. */
  async of(message: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
    return new Uint8Array(await crypto.subtle.sign("HMAC", await this.#imported(), message));
  }

  // The key is kept and not its promise: on Workers one request must not wait for a promise of another.
  async #imported(): Promise<CryptoKey> {
    const algorithm = { name: "HMAC", hash: "SHA-256" };
    this.#key ??= await crypto.subtle.importKey("raw", this.#bytes, algorithm, false, ["sign"]);
    return this.#key;
  }
}
