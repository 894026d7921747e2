import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadUws } from '../../server/http/uws-binary.js';

/**
 * A server with nothing but a transport. It responds to each request with a file, whose number is the path (`/0` is the first). The fastest
 * bare server is the upper bound for any server on this machine. Usage: `bare-server.js KIND FILE…`; prints its address.
 */
function serveUws(bodies: readonly Buffer[]): void {
  const found = loadUws();
  if (!('uws' in found)) throw new Error(found.whyNot);
  const { uws } = found;
  uws._cfg('silent');
  const app = uws.App();
  app.any('/*', (response, request) => {
    const body = bodies[Number(request.getUrl().slice(1))]!;
    response.onAborted(() => undefined);
    response.writeHeader('Content-Type', 'application/x-ndjson');
    const [, isDone] = response.tryEnd(body, body.length);
    if (isDone) return;
    response.onWritable((offset) => response.tryEnd(body.subarray(offset), body.length)[0]);
  });
  app.listen('127.0.0.1', 0, uws.LIBUS_LISTEN_EXCLUSIVE_PORT, (socket) => {
    if (socket === false) throw new Error('uWebSockets.js found no free port');
    announce(uws.us_socket_local_port(socket), 'uws');
  });
}

function serveNode(bodies: readonly Buffer[]): Server {
  return createServer(({ url = '/0' }, response) => {
    const body = bodies[Number(url.slice(1))]!;
    response.writeHead(200, { 'Content-Type': 'application/x-ndjson', 'Content-Length': body.length });
    response.end(body);
  });
}

function announce(port: number, transport: string): void {
  process.stdout.write(`serving  http://127.0.0.1:${port}/  (${transport})\n`);
}

const [kind, ...paths] = process.argv.slice(2);
const bodies = paths.map((path) => readFileSync(path));
if (kind === 'uws') {
  serveUws(bodies);
} else {
  const server = serveNode(bodies);
  server.listen(0, '127.0.0.1', () => announce((server.address() as AddressInfo).port, 'node'));
}
