import type { Server } from 'node:net';
import { LogstrataError } from '../../engine/index.js';

/** An address as people write it, with IPv6 in brackets. */
export function formatAddress(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The URL of a server that listens on `host`. If it listens on every address, the URL names `localhost`. */
export function formatUrl(host: string, port: number, isTls: boolean): string {
  const isEverywhere = host === '0.0.0.0' || host === '::';
  return `${isTls ? 'https' : 'http'}://${formatAddress(isEverywhere ? 'localhost' : host, port)}`;
}

/** Whether a server that listens on `host` can be reached from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}

/** Listens, and returns the port. Throws `invalid` for an address that can't be listened on, naming it and the reason. */
export async function listenOn(server: Server, host: string, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const address = formatAddress(host, port);
      reject(new LogstrataError('invalid', `can't listen on ${address}: ${describe(cause)}`, { cause }));
    });
    server.listen({ port, host }, resolve);
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : port;
}

function describe(cause: NodeJS.ErrnoException): string {
  switch (cause.code) {
    case 'EADDRINUSE':
      return 'another process uses this port (`ss -ltnp` shows which); stop it, or choose another port';
    case 'EACCES':
      return 'this user has no permission for this port; ports from 1024 on need none';
    case 'EADDRNOTAVAIL':
      return 'this machine has no such address';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'there is no host of this name';
    default:
      return cause.message;
  }
}
