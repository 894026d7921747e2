import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { expect, onTestFinished } from 'vitest';
import { run } from '../cli/process.js';
import { itUnless, missingProgram, notLinux } from '../needs.js';
import { allNumbers, numbersFolder, serveNumbers, until } from './numbered-log.js';

const agentFile = `fields:
  - name: time
    timestamp: { format: common }
  - name: n
    type: int
file:
  path: '../logs/access\\.log'
  format: plain
  regex: '\\[(?P<time>[^\\]]+)\\] "GET /(?P<n>\\d+) '
`;

const rotations = 5;

/** The rotation in the middle of which the server is killed and started again. */
const killedAt = 2;

const requestsBetween = 1500;
const connections = 16;

/** The server closes a removed log after a minute without new lines. Only then is it decided what a compressed copy of it has. */
const settleMs = 180_000;

const numbersIn = (content: Buffer): number[] =>
  [...content.toString('latin1').matchAll(/GET \/(\d+) /g)].map(([, n]) => Number(n));

/** An nginx that writes a line for each request, and its clients. */
class Nginx {
  /** Number of requests that were answered. The requests have the numbers from 1 on. */
  answered = 0;
  private begun = 0;
  private isStopping = false;
  private lanes: Promise<unknown> = Promise.resolve();
  private readonly agent = new Agent({ keepAlive: true, maxSockets: connections });

  private constructor(
    private readonly socketPath: string,
    private readonly child: ChildProcess,
  ) {}

  /** @param buffer how it buffers the lines of its log */
  static async start(folder: string, buffer: string): Promise<Nginx> {
    const socket = join(folder, 'nginx.sock');
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
    const config = `${process.getuid!() === 0 ? 'user root;' : ''}
      daemon off; worker_processes 8; pid ${folder}/nginx.pid; error_log ${folder}/nginx.error;
      events { worker_connections 256; }
      http {
        ${paths.map((path) => `${path}_temp_path ${folder}/${path};`).join(' ')}
        access_log ${folder}/logs/access.log combined ${buffer}; keepalive_requests 1000000;
        server { listen unix:${socket}; location / { return 204; } }
      }`;
    writeFileSync(join(folder, 'nginx.conf'), config);
    const args = ['-c', join(folder, 'nginx.conf'), '-e', join(folder, 'nginx.error')];
    const nginx = new Nginx(socket, spawn('nginx', args, { stdio: 'ignore' }));
    onTestFinished(() => nginx.stop());
    await until(() => existsSync(join(folder, 'nginx.pid')) && existsSync(socket), 'nginx listens');
    return nginx;
  }

  startLoad(): void {
    const lane = async (): Promise<void> => {
      while (!this.isStopping) {
        await this.request(++this.begun);
        this.answered++;
      }
    };
    this.lanes = Promise.all(Array.from({ length: connections }, lane));
  }

  private request(n: number): Promise<void> {
    const { agent, socketPath } = this;
    return new Promise((resolve, reject) => {
      const request = get({ agent, socketPath, path: `/${n}` }, (answer) =>
        answer.resume().on('end', resolve),
      );
      request.on('error', reject);
    });
  }

  /** Waits until the clients have made some more requests. */
  async moreRequests(): Promise<void> {
    const before = this.answered;
    await until(() => this.answered >= before + requestsBetween, 'requests are answered');
  }

  /** Ends the requests, and nginx once it has written the lines of all of them. */
  async stop(): Promise<void> {
    this.isStopping = true;
    await this.lanes;
    this.agent.destroy();
    const { child } = this;
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGQUIT');
    await once(child, 'exit');
  }
}

/** The numbers in all files of a folder of logs. */
function numbersOfFolder(folder: string): Set<number> {
  const contents = readdirSync(folder).map((name) => {
    const content = readFileSync(join(folder, name));
    return name.endsWith('.gz') ? gunzipSync(content) : content;
  });
  return new Set(contents.flatMap(numbersIn));
}

async function rotate(folder: string, options: string): Promise<void> {
  const config = join(folder, 'logrotate.conf');
  const reopen = `postrotate\n kill -USR1 $(cat ${folder}/nginx.pid)\n endscript`;
  const text = `${folder}/logs/access.log {\n rotate 100\n ${options}\n ${options === 'copytruncate' ? '' : reopen}\n}\n`;
  writeFileSync(config, text, { mode: 0o600 });
  const child = spawn('logrotate', ['-f', '-s', join(folder, 'state'), config], { stdio: 'ignore' });
  expect(await once(child, 'exit')).toEqual([0, null]);
}

/** Waits until the server has read every file to its end. */
async function settled(folder: string): Promise<void> {
  const logs = join(folder, 'logs');
  const isSettled = async (): Promise<boolean> => {
    await delay(1000);
    const { stdout } = await run(folder, ['stats', 'numbers', '--json']);
    const { files } = (JSON.parse(stdout) as { collecting: { files: CollectedFile[] } }).collecting;
    const isRead = ({ path, role, offset, lagBytes }: CollectedFile): boolean =>
      role === 'done' ||
      (role === 'follow' &&
        lagBytes === 0 &&
        offset >= (statSync(path, { throwIfNoEntry: false })?.size ?? 0));
    return (
      files.every(isRead) &&
      readdirSync(logs).every((name) => files.some(({ path }) => path === join(logs, name)))
    );
  };
  await until(isSettled, 'every file is read', settleMs);
}

interface CollectedFile {
  readonly path: string;
  readonly role: string;
  readonly offset: number;
  readonly lagBytes: number;
}

/** With a buffer, nginx still writes many lines to the renamed log, also while that is compressed. */
const modes = [
  { mode: 'create', options: 'create', buffer: '' },
  { mode: 'copytruncate', options: 'copytruncate', buffer: '' },
  { mode: 'compress with delaycompress', options: 'create\n compress\n delaycompress', buffer: '' },
  { mode: 'compress without delaycompress', options: 'create\n compress', buffer: 'buffer=64k flush=1s' },
];

const whyNot = notLinux ?? missingProgram('nginx', 'logrotate');

for (const { mode, options, buffer } of modes)
  itUnless(
    whyNot,
    `the log of nginx under load is stored once through rotations by logrotate: ${mode}`,
    async () => {
      const folder = numbersFolder();
      const logs = join(folder, 'logs');
      const log = join(logs, 'access.log');
      writeFileSync(join(folder, 'agents/numbers.yaml'), agentFile);
      const nginx = await Nginx.start(folder, buffer);
      let served = await serveNumbers(folder);
      nginx.startLoad();
      /** Each log before its rotation, which shows its lines also when it has been removed. */
      const handles: number[] = [];
      for (let i = 0; i < rotations; i++) {
        await nginx.moreRequests();
        handles.push(openSync(log, 'r'));
        // A log that is gone before the server has opened it has nothing but its compressed copy.
        await until(async () => {
          const [first] = numbersIn(readFileSync(log));
          return first !== undefined && (await served.ask(`n__eq=${first}`)).length > 0;
        }, 'the log is read');
        const rotated = rotate(folder, options);
        if (i === killedAt) {
          served.process.child.kill('SIGKILL');
          await served.process.finished;
          served = await serveNumbers(folder);
        }
        await rotated;
      }
      await nginx.moreRequests();
      await nginx.stop();
      await settled(folder);
      const running = await allNumbers(served);
      served.process.child.kill('SIGTERM');
      await served.process.finished;
      served = await serveNumbers(folder);
      await settled(folder);
      const stored = await allNumbers(served);

      expect({ mode, records: stored.length }).toEqual({ mode, records: running.length });
      expect({ mode, records: stored.length }).toEqual({ mode, records: new Set(stored).size });

      const remaining = numbersOfFolder(logs);
      const before = handles.map((handle) => {
        const numbers = numbersIn(readFileSync(handle));
        closeSync(handle);
        return numbers;
      });
      const written = new Set([...remaining, ...before.flat()]);
      // What logrotate itself loses: lines between copying and truncating, and lines that were removed while the server was down.
      if (mode !== 'copytruncate')
        expect({ mode, written: written.size }).toEqual({ mode, written: nginx.answered });
      const removed = new Set(before[killedAt]!.filter((n) => !remaining.has(n)));
      const known = new Set(stored);
      const lost = [...written].filter((n) => !known.has(n) && !removed.has(n));
      expect({ mode, lost }).toEqual({ mode, lost: [] });
    },
  );
