/** A `tidegate serve` and the application beside it, on free ports, ended with the test. */

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export interface Running {
  /** Where the application listens. */
  readonly url: string;
  /** `tidegate control …`, as an operator would type it. */
  control(verb: "stop" | "resume"): Promise<void>;
}

export async function start(test: TestContext): Promise<Running> {
  const binary = process.env.TIDEGATE_BINARY;
  if (binary === undefined) throw new Error("TIDEGATE_BINARY must name the tidegate binary to test against");
  const folder = await mkdtemp(join(tmpdir(), "tidegate-example-web-"));
  const free = {
    TIDEGATE_GUARD__LISTEN: "127.0.0.1:0",
    TIDEGATE_ADMIN__LISTEN: "127.0.0.1:0",
    TIDEGATE_INGRESS__LISTEN: "127.0.0.1:0",
  };
  const server = spawn(binary, ["serve"], { cwd: folder, env: free, stdio: ["ignore", "pipe", "ignore"] });
  ends(test, server);
  test.after(() => rm(folder, { recursive: true, force: true }));
  const guard = await lineOf(server, /^ {2}guard +(http:\S+)/);
  const main = fileURLToPath(new URL("../src/main.js", import.meta.url));
  const secrets = join(folder, "tidegate-data", "secrets.toml");
  const app = spawn(process.execPath, [main, secrets], {
    // Patient, so that a loaded machine does not look like a slow store.
    env: { PORT: "0", TIDEGATE_CLIENT_URL: guard, TIDEGATE_CLIENT_TIMEOUT_MS: "2000" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  ends(test, app);
  const control = async (verb: string) => {
    const env = { TIDEGATE_GUARD__LISTEN: new URL(guard).host };
    await promisify(execFile)(binary, ["control", verb], { cwd: folder, env });
  };
  return { url: await lineOf(app, /^listening on (http:\S+)/), control };
}

function ends(test: TestContext, child: ChildProcess): void {
  const ended = new Promise((resolve) => child.once("exit", resolve));
  test.after(async () => {
    child.kill("SIGKILL");
    await ended;
  });
}

/** What `pattern` finds in the first line of the child's output that it matches. */
function lineOf(child: ChildProcess, pattern: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`${child.spawnfile} ended with ${code}`)));
    if (child.stdout === null) return reject(new Error("the output is not read"));
    createInterface(child.stdout).on("line", (line) => {
      const found = pattern.exec(line)?.[1];
      if (found !== undefined) resolve(found);
    });
  });
}
