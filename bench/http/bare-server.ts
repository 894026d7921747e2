import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createNetServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { loadUws } from '../../server/uws-binary.js';

/**
 * A bare transport: answers every request with the bytes of a file, and does nothing else. What the fastest of them reaches is the
 * most that any server here could. `bare-server.js KIND FILE`; prints its address.
 */
function serveUws(body: Buffer): void {
  const uws = loadUws();
  if (uws === undefined) throw new Error('there is no binary of uWebSockets.js for this machine');
  uws._cfg('silent');
  const app = uws.App();
  app.any('/*', (response) => {
    response.onAborted(() => undefined);
    response.writeHeader('Content-Type', 'application/x-ndjson');
    const [, isDone] = response.tryEnd(body, body.length);
    if (isDone) return;
    response.onWritable((offset) => response.tryEnd(body.subarray(offset), body.length)[0]);
  });
  app.listen('127.0.0.1', 0, (socket) => {
    if (socket === false) throw new Error('uWebSockets.js found no free port');
    announce(uws.us_socket_local_port(socket), 'uws');
  });
}

function serveNode(body: Buffer): Server {
  return createServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'application/x-ndjson', 'Content-Length': body.length });
    response.end(body);
  });
}

/** Takes every packet for one request: our client sends them so. */
function serveNet(body: Buffer): Server {
  const head = Buffer.from(
    `HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: ${body.length}\r\n\r\n`,
    'latin1',
  );
  return createNetServer({ noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy());
    socket.on('data', () => {
      socket.cork();
      socket.write(head);
      socket.write(body);
      socket.uncork();
    });
  });
}

function announce(port: number, transport: string): void {
  process.stdout.write(`serving  http://127.0.0.1:${port}/  (${transport})\n`);
}

const [kind, path = ''] = process.argv.slice(2);
const body = readFileSync(path);
if (kind === 'uws') {
  serveUws(body);
} else {
  const server = kind === 'net' ? serveNet(body) : serveNode(body);
  server.listen(0, '127.0.0.1', () => announce((server.address() as AddressInfo).port, kind ?? 'node'));
}
