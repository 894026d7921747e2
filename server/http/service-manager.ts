import { spawn, type ChildProcess } from 'node:child_process';

/** The assignments of one message, each sent as `NAME=value` (sd_notify(3)). */
export type Assignments = Readonly<Record<string, string>>;

/** Sends messages to the service manager. */
interface Notifications {
  send(assignments: Assignments): void;
  /** Ends sending. Messages that were sent before are still delivered, even after this process has ended. */
  close(): void;
}

/**
 * Bytes of messages that may wait for the helper process; further messages are dropped. Messages are short, and there is one every
 * few seconds.
 */
const waitingBytesMax = 64 * 1024;

/** Exit code of the helper where `systemd-notify` is not installed. */
const notFoundCode = 127;

/**
 * The shell script of the helper process. It runs `systemd-notify` once for each line of its input; the parts of a line between
 * tabs are the arguments. It ignores the signals that systemd, or a terminal, sends to all processes of a service, as the last
 * message comes after them. It ends when its input ends.
 */
const script = `trap '' HUP INT TERM
command -v systemd-notify >/dev/null || exit ${notFoundCode}
set -f
IFS='\t'
while read -r line; do systemd-notify $line; done`;

/**
 * Sends messages to the datagram socket of the service manager. Node can't send to a Unix datagram socket, so a small shell process
 * does. It is started at the first message and lives as long as this process: starting a process later, when this one has taken
 * gigabytes of memory, would block for longer.
 */
class ShellNotifications implements Notifications {
  #helper: ChildProcess | undefined;
  /** Set once messages can't be sent, or need not be sent any more. */
  #isOver = false;

  /** @param socket the value of `NOTIFY_SOCKET` */
  constructor(
    private readonly socket: string,
    private readonly warn: (message: string) => void,
  ) {}

  send(assignments: Assignments): void {
    if (this.#isOver) return;
    this.#helper ??= this.#start();
    const { stdin } = this.#helper;
    if (stdin === null || stdin.writableLength > waitingBytesMax) return;
    const words = Object.entries(assignments).map(([name, value]) => `${name}=${controlsAsBlanks(value)}`);
    stdin.write(`${words.join('\t')}\n`);
  }

  close(): void {
    this.#isOver = true;
    this.#helper?.stdin?.end();
  }

  #start(): ChildProcess {
    const env = { ...process.env, NOTIFY_SOCKET: this.socket };
    const helper = spawn('/bin/sh', ['-c', script], { env, stdio: ['pipe', 'ignore', 'ignore'] });
    // A failed write needs no handling: the helper has ended then, and `exit` reports it.
    helper.stdin?.on('error', () => undefined);
    helper.on('error', (error) => this.#lose(helper, error.message));
    helper.on('exit', (code) => {
      this.#lose(helper, code === notFoundCode ? 'systemd-notify is not installed' : undefined);
    });
    // Neither the helper nor its pipe may keep this process from ending.
    helper.unref();
    (helper.stdin as { unref?: () => void } | null)?.unref?.();
    return helper;
  }

  /** Handles the end of the helper. The next message starts a new one, unless `why` is given: then a new one would fail as well. */
  #lose(helper: ChildProcess, why: string | undefined): void {
    if (this.#isOver || this.#helper !== helper) return;
    this.#helper = undefined;
    if (why === undefined) return;
    this.#isOver = true;
    this.warn(`the service manager can't be notified and will consider the server not started: ${why}`);
  }
}

/** Replaces control characters by blanks: a tab or a line break would begin another argument or message. */
function controlsAsBlanks(text: string): string {
  return text.replace(/\p{Cc}/gu, ' ');
}

/** The environment of the process, with the variables by which systemd configures a service. */
export type ServiceEnvironment = Record<string, string | undefined>;

/** Whether the server is healthy. It is asked before each sign of life, beyond the fact that the event loop runs. */
export type IsWell = () => boolean;

/**
 * Reports the state of the server to systemd by the protocol of sd_notify(3): ready, reloading, stopping and, where the unit sets
 * `WatchdogSec`, signs of life.
 */
export class ServiceManager {
  readonly #notifications: Notifications | undefined;
  readonly #watchdogMs: number | undefined;
  #status = '';
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param notifications undefined where no service manager listens
   * @param watchdogMs the time within which systemd expects a sign of life; undefined where it expects none
   */
  constructor(notifications: Notifications | undefined, watchdogMs?: number) {
    this.#notifications = notifications;
    this.#watchdogMs = watchdogMs;
  }

  /** Sets the status text, which `systemctl status` shows. */
  starting(status: string): void {
    this.#tell({}, status);
  }

  /**
   * Reports that the server is ready. From now on systemd gets signs of life at half of the watchdog's interval, while `isWell`
   * returns true.
   */
  ready(status: string, isWell: IsWell): void {
    this.#tell({ READY: '1' }, status);
    if (this.#watchdogMs === undefined || this.#notifications === undefined) return;
    const sign = (): void => {
      if (isWell()) this.#notifications?.send({ WATCHDOG: '1' });
    };
    this.#timer = setInterval(sign, this.#watchdogMs / 2);
    this.#timer.unref();
  }

  /** Runs `work`, which reloads the configuration, and reports to systemd that the server is reloading until it has ended. */
  async reloading(work: () => Promise<void>): Promise<void> {
    const before = this.#status;
    const microseconds = process.hrtime.bigint() / 1000n;
    this.#tell(
      { RELOADING: '1', MONOTONIC_USEC: String(microseconds) },
      'reloading agents, tokens and certificates',
    );
    try {
      await work();
    } finally {
      this.#tell({ READY: '1' }, before);
    }
  }

  /** Reports that the server is stopping. */
  stopping(status: string): void {
    this.#tell({ STOPPING: '1' }, status);
  }

  /** Ends the signs of life and all messages. */
  close(): void {
    clearInterval(this.#timer);
    this.#notifications?.close();
  }

  #tell(assignments: Readonly<Record<string, string>>, status: string): void {
    this.#status = status;
    this.#notifications?.send({ ...assignments, STATUS: status });
  }
}

/**
 * The service manager that the environment names; one that sends nothing where it names none. Removes the variables from the
 * environment, so that child processes, such as one that rotates logs, do not report to systemd.
 */
export function serviceManagerOf(
  environment: ServiceEnvironment,
  pid: number,
  warn: (message: string) => void,
): ServiceManager {
  const { NOTIFY_SOCKET: socket = '', WATCHDOG_USEC, WATCHDOG_PID } = environment;
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete environment[name];
  if (socket === '') return new ServiceManager(undefined);
  const isForUs = WATCHDOG_PID === undefined || Number(WATCHDOG_PID) === pid;
  const microseconds = Number(WATCHDOG_USEC ?? 0);
  const isExpected = isForUs && Number.isSafeInteger(microseconds) && microseconds > 0;
  return new ServiceManager(
    new ShellNotifications(socket, warn),
    isExpected ? microseconds / 1000 : undefined,
  );
}
