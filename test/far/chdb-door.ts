import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, describe, it } from 'vitest';
import type { FarSettings } from '../../engine/store/far/far-place.js';

interface Session {
  queryAsync(sql: string, options: { readonly format: string }): Promise<{ bytes(): Uint8Array }>;
  close(): void;
}

const chdb = join(import.meta.dirname, '../../bench/peers/clickhouse/node_modules/chdb/index.mjs');

/** Tests on today's ClickHouse in this process. Where it is not installed, one test stands for them and says so. */
export function describeWithChdb(title: string, tests: () => void): void {
  if (existsSync(chdb)) describe(title, tests);
  else
    it(`${title}: not tried, since chdb is not installed (node bench/peers/install.mjs clickhouse)`, () => {
      expect(existsSync(chdb)).toBe(false);
    });
}

/** HTTP in front of a ClickHouse that has none: as much of it as a far tier asks for. */
export class ChdbDoor {
  private constructor(
    private readonly folder: string,
    private readonly server: Server,
    private readonly session: Session,
  ) {}

  static async start(): Promise<ChdbDoor> {
    const { Session: Made } = (await import(pathToFileURL(chdb).href)) as {
      Session: new (path: string) => Session;
    };
    const folder = await mkdtemp(join(tmpdir(), 'logstrata-chdb-'));
    const session = new Made(join(folder, 'data'));
    // A session does one thing at a time.
    let turn: Promise<unknown> = Promise.resolve();
    const server = createServer((request, response) => {
      const answer = turn.then(() => answerOf(session, folder, request));
      turn = answer.catch(() => undefined);
      answer.then(
        (bytes) => response.end(bytes),
        (error: unknown) => {
          response.statusCode = 500;
          response.end(`Code: 1. DB::Exception: ${String(error)}`);
        },
      );
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new ChdbDoor(folder, server, session);
  }

  settings(database = 'logs'): FarSettings {
    const { port } = this.server.address() as { port: number };
    return { shards: [[`http://127.0.0.1:${port}`]], database, user: 'default', password: '' };
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    this.session.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}

async function answerOf(session: Session, folder: string, request: IncomingMessage): Promise<Uint8Array> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const body = Buffer.concat(pieces);
  const named = new URL(request.url!, 'http://a').searchParams.get('query');
  const sql = named ?? body.toString();
  if (sql.startsWith('KILL')) return new Uint8Array(0);
  const match = /^(.*) FORMAT (\w+)$/s.exec(sql);
  if (named !== null && sql.startsWith('INSERT')) {
    const file = join(folder, 'insert.native');
    await writeFile(file, body);
    return asked(session, `${match![1]!} FROM INFILE '${file}' FORMAT Native`, 'CSV');
  }
  return asked(session, match?.[1] ?? sql, match?.[2] ?? 'TabSeparated');
}

async function asked(session: Session, sql: string, format: string): Promise<Uint8Array> {
  return (await session.queryAsync(sql, { format })).bytes();
}
