/** Accounts and their passwords; a real application keeps them in its database. */

import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";

const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);

interface Stored {
  readonly salt: Buffer;
  readonly hash: Buffer;
}

export class Users {
  readonly #stored = new Map<string, Stored>();

  async add(name: string, password: string): Promise<void> {
    const salt = randomBytes(16);
    this.#stored.set(accountOf(name), { salt, hash: await hashed(password, salt) });
  }

  /** Takes as long for a name that nobody has. */
  async isRight(account: string, password: string): Promise<boolean> {
    const { salt, hash } = this.#stored.get(account) ?? NOBODY;
    return timingSafeEqual(hash, await hashed(password, salt));
  }
}

/** The account that a typed name logs into. Attempts are counted by it, so that no spelling has attempts of its
 * own. */
export function accountOf(typed: string): string {
  return typed.trim().normalize("NFKC").toLowerCase();
}

function hashed(password: string, salt: Buffer): Promise<Buffer> {
  return derive(password, salt, 32, { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 1024 * 1024 });
}

const NOBODY: Stored = { salt: randomBytes(16), hash: randomBytes(32) };
