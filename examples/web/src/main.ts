/** Starts the application beside a `tidegate serve`. */

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { type ClientEnvironment, Selection } from "@tidegate/client";
import { appOf } from "./app.js";
import { limitsOf } from "./limits.js";
import { serverOf } from "./serve.js";
import { Tokens } from "./tokens.js";
import { Users } from "./users.js";

/** The client's variables; without a secret among them, that of the server's data directory on this machine. */
function environment(): ClientEnvironment {
  const families = { TIDEGATE_CLIENT_FAMILIES: "proxy,password,replay,offline" };
  if (process.env.TIDEGATE_CLIENT_SECRET) return { ...families, ...process.env };
  const file = process.argv[2] ?? "../../tidegate-data/secrets.toml";
  const text = readFileSync(file, "utf8");
  const value = (key: string) => new RegExp(`^${key} = "(.+)"$`, "m").exec(text)?.[1];
  return {
    ...families,
    TIDEGATE_CLIENT_URL: "http://127.0.0.1:8787",
    TIDEGATE_CLIENT_SECRET: value("guard_secret"),
    TIDEGATE_CLIENT_KEY_PEPPER: value("pepper"),
    ...process.env,
  };
}

const users = new Users();
await users.add("alice@example.com", "correct horse battery staple");
const app = appOf({
  limits: limitsOf(new Selection(environment())),
  tokens: new Tokens(process.env.TOKEN_SECRET ?? randomBytes(32).toString("hex")),
  users,
  // Stands for the provider of a challenge, which would be asked over the network.
  isSolved: async (answer) => answer === "42",
});
const server = serverOf(app);
server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
