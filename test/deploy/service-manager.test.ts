import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Assignments } from '../../server/http/service-manager.js';
import { ServiceManager, serviceManagerOf } from '../../server/http/service-manager.js';
import { freePort, start, workFolder } from '../cli/process.js';

/** A service manager to which a server reports its state. */
interface Listener {
  /** The environment variables of the server. */
  readonly environment: Readonly<Record<string, string>>;
  /** Received messages, each with its assignments in order. */
  messages(): string[][];
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-notify-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const pathWith = (folder: string): string => `${folder}${delimiter}${process.env['PATH']}`;

/** Replaces systemd-notify: writes its arguments to the file that `NOTIFY_SOCKET` names. */
function scriptedListener(): Promise<Listener> {
  const folder = temporaryFolder();
  const said = join(folder, 'said');
  const path = join(folder, 'systemd-notify');
  writeFileSync(path, `#!/bin/sh\n{ printf '%s\\t' "$@"; echo; } >> "$NOTIFY_SOCKET"\n`);
  chmodSync(path, 0o755);
  const lines = (): string[] => (existsSync(said) ? readFileSync(said, 'utf8').trimEnd().split('\n') : []);
  return Promise.resolve({
    environment: { NOTIFY_SOCKET: said, PATH: pathWith(folder) },
    messages: () => lines().map((line) => line.trimEnd().split('\t')),
  });
}

/** A datagram socket, as systemd has one. */
const receiver = `
import json, socket, sys
listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listening.bind(sys.argv[1])
print(json.dumps([]), flush=True)
while True:
    said = listening.recv(65536).decode().rstrip("\\n").split("\\n")
    print(json.dumps(said), flush=True)
`;
import { itUnless, missingProgram } from '../needs.js';

async function socketListener(): Promise<Listener> {
  const socket = join(temporaryFolder(), 'notify');
  const child = spawn('python3', ['-c', receiver, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let text = '';
  child.stdout.on('data', (piece: Buffer) => (text += piece.toString()));
  while (!text.includes('\n')) await new Promise((resolve) => setTimeout(resolve, 10));
  const whole = (): string[] => text.split('\n').slice(1, -1);
  return {
    environment: { NOTIFY_SOCKET: socket },
    // systemd-notify also asks whether its message was read.
    messages: () =>
      whole()
        .map((line) => JSON.parse(line) as string[])
        .filter(([first]) => first !== 'BARRIER=1'),
  };
}

const listeners = [
  { what: 'a script', listen: scriptedListener, whyNot: null },
  {
    what: 'systemd-notify and a datagram socket',
    listen: socketListener,
    whyNot: missingProgram('systemd-notify', 'python3'),
  },
];

describe.each(listeners)('a server with a service manager ($what)', ({ listen, whyNot }) => {
  itUnless(
    whyNot,
    'reports that it starts, is ready, is alive, reloads and stops, in that order',
    async () => {
      const { environment, messages } = await listen();
      const folder = workFolder();
      const address = `127.0.0.1:${await freePort()}`;
      const server = start(folder, ['serve', '--listen', address, '--console', 'off'], {
        ...environment,
        WATCHDOG_USEC: '200000',
      });
      const heard = async (message: string, times = 1): Promise<void> => {
        const count = (): number => messages().filter((each) => each.includes(message)).length;
        while (count() < times) {
          expect(server.child.exitCode).toBeNull();
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      };
      await heard('READY=1');
      // It answers queries by then.
      expect((await fetch(`http://${address}/api/query/nginx?limit=1`)).status).toBe(200);
      await heard('WATCHDOG=1', 2);
      server.child.kill('SIGHUP');
      await heard('READY=1', 2);
      server.child.kill('SIGTERM');
      expect((await server.finished).code).toBe(0);
      const isThrough = (): boolean => messages().some(([first]) => first === 'STOPPING=1');
      while (!isThrough()) await new Promise((resolve) => setTimeout(resolve, 20));

      const said = messages();
      const states = said.filter(([first]) => first !== 'WATCHDOG=1');
      const answering = `STATUS=answering for 2 agents at http://${address}`;
      expect(states).toEqual([
        [`STATUS=opening ${join(folder, 'data/store')}`],
        ['READY=1', answering],
        [
          'RELOADING=1',
          expect.stringMatching(/^MONOTONIC_USEC=\d+$/),
          'STATUS=reloading agents, tokens and certificates',
        ],
        ['READY=1', answering],
        ['STOPPING=1', 'STATUS=stopping after the answers under way'],
      ]);
      const at = (message: string): number => said.findIndex((each) => each.includes(message));
      expect(at('WATCHDOG=1')).toBeGreaterThan(at('READY=1'));
    },
  );
});

it('reports why the service manager cannot be reached, and serves nevertheless', async () => {
  const folder = workFolder();
  const empty = join(temporaryFolder(), 'bin');
  mkdirSync(empty);
  const server = start(folder, ['serve', '--listen', `127.0.0.1:${await freePort()}`, '--console', 'off'], {
    NOTIFY_SOCKET: join(folder, 'nobody'),
    PATH: empty,
  });
  await server.shows('serving ');
  await server.shows("logstrata: warning: the service manager can't be notified");
  server.child.kill('SIGTERM');
  const { code, stderr } = await server.finished;
  expect([code, stderr]).toEqual([0, expect.stringContaining('systemd-notify is not installed')]);
});

describe('signs of life', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('are sent at half of the watchdog interval, and only while the server is healthy', () => {
    const sent: Assignments[] = [];
    const manager = new ServiceManager({ send: (each) => sent.push(each), close: () => {} }, 1000);
    let isWell = true;
    const lives = (): number => sent.filter(({ WATCHDOG }) => WATCHDOG === '1').length;
    manager.starting('opening');
    vi.advanceTimersByTime(5000);
    expect(lives()).toBe(0);
    manager.ready('answering', () => isWell);
    vi.advanceTimersByTime(499);
    expect(lives()).toBe(0);
    vi.advanceTimersByTime(4501);
    expect(lives()).toBe(10);
    isWell = false;
    vi.advanceTimersByTime(5000);
    expect(lives()).toBe(10);
    manager.close();
  });
});

it('variables of the service manager are not passed on to programs that a server starts', () => {
  const environment = { NOTIFY_SOCKET: '', WATCHDOG_USEC: '1', WATCHDOG_PID: '2', HOME: '/' };
  serviceManagerOf(environment, 1, () => {}).close();
  expect(environment).toEqual({ HOME: '/' });
});
