/** Takes the programs of the README out of it, for the compiler and for `readme.test.ts`. */

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const folder = new URL("readme/", import.meta.url);
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder);
for (const [, name, program] of readme.matchAll(/^```ts (\w+)\n(.*?)^```$/gms)) {
  writeFileSync(new URL(`${name}.ts`, folder), program);
}
