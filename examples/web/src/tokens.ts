/** Tokens that this application signs itself: who, which, until when. */

import { createHmac, timingSafeEqual } from "node:crypto";

export interface Token {
  readonly kind: "access" | "refresh";
  readonly id: string;
  readonly user: string;
  readonly expiresAtMs: number;
}

export class Tokens {
  readonly #secret: string;

  constructor(secret: string) {
    this.#secret = secret;
  }

  write(token: Token): string {
    const text = Buffer.from(JSON.stringify(token)).toString("base64url");
    return `${text}.${this.#mac("token", text).toString("base64url")}`;
  }

  /** The token, if it was signed here and has not ended. */
  read(kind: Token["kind"], written: unknown): Token | undefined {
    if (typeof written !== "string") return undefined;
    const [text = "", mac = ""] = written.split(".");
    const expected = this.#mac("token", text);
    const given = Buffer.from(mac, "base64url");
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
    const token: Token = JSON.parse(Buffer.from(text, "base64url").toString());
    return token.kind === kind && token.expiresAtMs > Date.now() ? token : undefined;
  }

  /** The id of the one token that follows another, so that asking twice makes no second line of them. */
  next(id: string): string {
    return this.#mac("next", id).toString("base64url");
  }

  #mac(purpose: string, text: string): Buffer {
    return createHmac("sha256", this.#secret).update(`${purpose}\0${text}`).digest();
  }
}
