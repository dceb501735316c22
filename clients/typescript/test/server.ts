/** One running `tidegate serve` on free ports in a folder of its own. */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";

export const SECRET = "signing-secret-for-the-tests-0123456789";
export const PEPPER = "pepper-for-the-tests-0123456789abcdef";
const OPERATOR_TOKEN = "operator-token-for-the-tests-0123456789";

export interface Server {
  readonly url: string;
  readonly process: ChildProcess;
  /** One of the operator's calls; what it answered. */
  control(path: string, body?: object): Promise<unknown>;
  stop(): Promise<void>;
}

/** Starts a server, and ends it with the test. `settings` are variables of its environment. */
export async function startServer(test: TestContext, settings: Record<string, string> = {}): Promise<Server> {
  const binary = process.env.TIDEGATE_BINARY;
  if (binary === undefined) throw new Error("TIDEGATE_BINARY must name the tidegate binary to test against");
  const folder = await mkdtemp(join(tmpdir(), "tidegate-typescript-"));
  const child = spawn(binary, ["serve", "--data-dir", join(folder, "data")], {
    cwd: folder,
    env: {
      TIDEGATE_GUARD__LISTEN: "127.0.0.1:0",
      TIDEGATE_INGRESS__LISTEN: "127.0.0.1:0",
      TIDEGATE_ADMIN__LISTEN: "127.0.0.1:0",
      TIDEGATE_GUARD__SECRETS: SECRET,
      TIDEGATE_GUARD__OPERATOR_TOKEN: OPERATOR_TOKEN,
      TIDEGATE_STORE__DURABILITY: "process",
      ...settings,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  test.after(stop);
  const url = await listening(child);
  return { url, process: child, stop, control: (path, body) => control(url, path, body) };
}

/** Where the server says that it listens. */
function listening(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let log = "";
    child.stderr?.on("data", (chunk) => {
      log = (log + chunk).slice(-4096);
    });
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${log}`)));
    if (child.stdout === null) return reject(new Error("the server's output is not read"));
    createInterface(child.stdout).on("line", (line) => {
      const url = /^ {2}guard +(http:\S+)/.exec(line)?.[1];
      if (url !== undefined) resolve(url);
    });
  });
}

async function control(url: string, path: string, body?: object): Promise<unknown> {
  const answer = await fetch(`${url}/control/${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}
