import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createNetServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { loadUws } from '../../server/uws-binary.js';

/**
 * A bare transport: answers every request with the bytes of a file, the one whose number stands for the path (`/0` is the first), and
 * does nothing else. What the fastest of them reaches is the most that any server here could. `bare-server.js KIND FILE…`; prints its
 * address.
 */
function serveUws(bodies: readonly Buffer[]): void {
  const uws = loadUws();
  if (uws === undefined) throw new Error('there is no binary of uWebSockets.js for this machine');
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
  app.listen('127.0.0.1', 0, (socket) => {
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

const digitZero = 0x30;
const digitNine = 0x39;
const pathAt = 'GET /'.length;

/** Takes every packet for one request: our client sends them so. */
function serveNet(bodies: readonly Buffer[]): Server {
  const heads = bodies.map((body) =>
    Buffer.from(
      `HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: ${body.length}\r\n\r\n`,
      'latin1',
    ),
  );
  return createNetServer({ noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy());
    socket.on('data', (packet: Buffer) => {
      let number = 0;
      for (let at = pathAt; packet[at]! >= digitZero && packet[at]! <= digitNine; at++)
        number = number * 10 + packet[at]! - digitZero;
      socket.cork();
      socket.write(heads[number]!);
      socket.write(bodies[number]!);
      socket.uncork();
    });
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
  const server = kind === 'net' ? serveNet(bodies) : serveNode(bodies);
  server.listen(0, '127.0.0.1', () => announce((server.address() as AddressInfo).port, kind ?? 'node'));
}
