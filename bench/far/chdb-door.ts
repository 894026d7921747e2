import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FarSettings } from '../../engine/far/far-transport.js';
import { importPeer } from '../sides/peer-package.js';

interface Session {
  queryAsync(sql: string, options: { readonly format: string }): Promise<{ bytes(): Uint8Array }>;
  close(): void;
}

interface ChdbModule {
  readonly Session: new (path: string) => Session;
}

/** Settings of a statement that are passed on; the others only concern HTTP. */
const settingNames = ['max_block_size', 'preferred_block_size_bytes'];

/** An HTTP server in front of chdb, which has none: it implements what a far tier uses of ClickHouse's HTTP interface. */
export class ChdbDoor {
  private constructor(
    private readonly folder: string,
    private readonly server: Server,
    private readonly session: Session,
  ) {}

  /** Starts the server on a free port, with a temporary data folder. */
  static async start(): Promise<ChdbDoor> {
    const { Session } = await importPeer<ChdbModule>('clickhouse', 'chdb');
    const folder = await mkdtemp(join(tmpdir(), 'logstrata-chdb-'));
    const session = new Session(join(folder, 'data'));
    // A session can only run one statement at a time.
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

  /** The base URL. */
  get url(): string {
    const { port } = this.server.address() as { port: number };
    return `http://127.0.0.1:${port}`;
  }

  /** Settings of a far tier that uses this server. */
  settings(database = 'logs'): FarSettings {
    return { shards: [[this.url]], database, user: 'default', password: '' };
  }

  /** Stops the server and removes its data. */
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
  const { searchParams } = new URL(request.url!, 'http://a');
  const named = searchParams.get('query');
  const sql = named ?? body.toString();
  if (sql.startsWith('KILL')) return new Uint8Array(0);
  const match = /^(.*) FORMAT (\w+)$/s.exec(sql);
  if (named !== null && sql.startsWith('INSERT')) {
    const file = join(folder, 'insert.native');
    await writeFile(file, body);
    return asked(session, `${match![1]!} FROM INFILE '${file}' FORMAT Native`, 'CSV');
  }
  const settings = settingNames.flatMap((name) => {
    const value = searchParams.get(name);
    return value === null ? [] : [`${name} = ${Number(value)}`];
  });
  const suffix = settings.length === 0 ? '' : ` SETTINGS ${settings.join(', ')}`;
  return asked(session, `${match?.[1] ?? sql}${suffix}`, match?.[2] ?? 'TabSeparated');
}

async function asked(session: Session, sql: string, format: string): Promise<Uint8Array> {
  return (await session.queryAsync(sql, { format })).bytes();
}
