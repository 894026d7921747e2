import { ShellNotifications, type Notifications } from './notifications.js';

/** The variables by which systemd tells a service what it expects of it. */
export type ServiceEnvironment = Record<string, string | undefined>;

/** What an answer to "are you well?" goes by, beside that the event loop turns at all. */
export type IsWell = () => boolean;

/**
 * Tells systemd how the server is, by the protocol of sd_notify(3): that it answers, that it reads things anew, that it stops, and, where the
 * unit has `WatchdogSec`, that it is alive.
 */
export class ServiceManager {
  readonly #notifications: Notifications | undefined;
  readonly #watchdogMs: number | undefined;
  #status = '';
  #timer: NodeJS.Timeout | undefined;

  /** @param notifications is undefined where nobody waits for them */
  constructor(notifications: Notifications | undefined, watchdogMs?: number) {
    this.#notifications = notifications;
    this.#watchdogMs = watchdogMs;
  }

  /** What the server does now, for people: `systemctl status` shows it. */
  starting(status: string): void {
    this.#tell({}, status);
  }

  /** The server answers. From now on systemd waits for signs of life, which it gets as long as `isWell`. */
  ready(status: string, isWell: IsWell): void {
    this.#tell({ READY: '1' }, status);
    if (this.#watchdogMs === undefined || this.#notifications === undefined) return;
    const sign = (): void => {
      if (isWell()) this.#notifications?.send({ WATCHDOG: '1' });
    };
    this.#timer = setInterval(sign, this.#watchdogMs / 2);
    this.#timer.unref();
  }

  /** Runs `work`, which reads things anew: systemd says so meanwhile. */
  async reloading(work: () => Promise<void>): Promise<void> {
    const before = this.#status;
    const microseconds = process.hrtime.bigint() / 1000n;
    this.#tell(
      { RELOADING: '1', MONOTONIC_USEC: String(microseconds) },
      'reading agents, tokens and certificates anew',
    );
    try {
      await work();
    } finally {
      this.#tell({ READY: '1' }, before);
    }
  }

  /** The server was told to stop, or stops by itself. */
  stopping(status: string): void {
    this.#tell({ STOPPING: '1' }, status);
  }

  /** Nothing is told any more. */
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
 * The service manager that the environment names; one that is told nothing where it names none. Takes its variables out of the environment:
 * programs that this process starts, such as one that rotates logs, are none of the service manager's.
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
