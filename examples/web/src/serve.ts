/** A fetch-API application on `node:http`. Workers, Deno and Bun need none of this. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Handler } from "./app.js";

/** A server of `app`, not listening yet. */
export function serverOf(app: Handler): Server {
  return createServer((request, response) => {
    exchange(app, request, response).catch((error: unknown) => {
      console.error(error);
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  });
}

async function exchange(app: Handler, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) {
      response.writeHead(413, { connection: "close" }).end();
      return;
    }
    chunks.push(chunk);
  }
  const headers = new Headers();
  for (const [name, values] of Object.entries(incoming.headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  const body = bytes > 0 ? { body: Buffer.concat(chunks) } : {};
  const url = new URL(incoming.url ?? "/", "http://localhost");
  const request = new Request(url, { method: incoming.method ?? "GET", headers, ...body });
  // The socket's own address: `x-forwarded-for` is whatever the caller wrote, unless a proxy of yours wrote it.
  const answer = await app(request, incoming.socket.remoteAddress);
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(Buffer.from(await answer.arrayBuffer()));
}

/** A login or a token has a few hundred bytes. */
const BODY_BYTES_MAX = 4096;
