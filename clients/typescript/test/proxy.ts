/** Something between the client and the server that counts attempts, and does to them what a test says. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";

/**
 * - `pass`: hands on, both ways.
 * - `hold`: hands on, and keeps the answer until `release` is called: the server has executed it.
 * - `cut`: hands on, and breaks the connection instead of answering.
 * - anything else answers by itself.
 */
export type Behaviour = "pass" | "hold" | "cut" | { readonly status: number; readonly body: string };

export interface Proxy {
  readonly url: string;
  behaviour: Behaviour;
  /** Requests that have come, whatever became of them. */
  attempts: number;
  /** The bodies that have come. */
  readonly bodies: string[];
  /** Lets all held answers go, and waits until they are written or nobody is there to take them. */
  release(): Promise<void>;
  /** Closes the connections that clients have kept. */
  closeConnections(): void;
}

export async function startProxy(
  test: TestContext,
  target: string,
  behaviour: Behaviour = "pass",
): Promise<Proxy> {
  const held: (() => void)[] = [];
  const ended: Promise<void>[] = [];
  const server = createServer((request, response) => {
    const work = handle(request, response);
    ended.push(work.catch(() => void response.destroy()));
  });
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    proxy.attempts++;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    proxy.bodies.push(body.toString());
    const { behaviour } = proxy;
    if (typeof behaviour === "object") {
      response.writeHead(behaviour.status, { location: `${target}/elsewhere` }).end(behaviour.body);
      return;
    }
    const answer = await fetch(target + request.url, {
      method: "POST",
      headers: { "tidegate-signature": `${request.headers["tidegate-signature"]}` },
      body,
    });
    const text = await answer.text();
    if (behaviour === "hold") await new Promise<void>((resolve) => held.push(resolve));
    if (behaviour === "cut") request.socket.destroy();
    else response.writeHead(answer.status, { "content-type": "application/json" }).end(text);
  };
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  const proxy: Proxy = {
    url: `http://127.0.0.1:${port}`,
    behaviour,
    attempts: 0,
    bodies: [],
    release: async () => {
      for (const release of held.splice(0)) release();
      await Promise.all(ended.splice(0));
    },
    closeConnections: () => server.closeAllConnections(),
  };
  test.after(async () => {
    await proxy.release();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return proxy;
}

/** An address that nobody listens on. */
export async function nobody(): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}
