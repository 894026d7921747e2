import { ShellNotifications, type Notifications } from './notifications.js';

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
