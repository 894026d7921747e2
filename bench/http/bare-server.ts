import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadUws, type Uws } from '../../server/uws-binary.js';

/**
 * The bare transport: answers every request with the bytes of the file that the command line names, and does nothing else. What it
 * reaches is the most that any server on it could. Prints its address.
 */
function serveUws(uws: Uws, body: Buffer): void {
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

function serveNode(body: Buffer): void {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'application/x-ndjson', 'Content-Length': body.length });
    response.end(body);
  });
  server.listen(0, '127.0.0.1', () => announce((server.address() as AddressInfo).port, 'node'));
}

function announce(port: number, transport: string): void {
  process.stdout.write(`serving  http://127.0.0.1:${port}/  (${transport})\n`);
}

const body = readFileSync(process.argv[2] ?? '');
const uws = loadUws();
if (uws === undefined) serveNode(body);
else serveUws(uws, body);
