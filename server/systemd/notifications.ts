import { spawn, type ChildProcess } from 'node:child_process';

/** The assignments of one message, each sent as `NAME=value` (sd_notify(3)). */
export type Assignments = Readonly<Record<string, string>>;

/** Sends messages to the service manager. */
export interface Notifications {
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
export class ShellNotifications implements Notifications {
  readonly #socket: string;
  readonly #warn: (message: string) => void;
  #helper: ChildProcess | undefined;
  /** Set once messages can't be sent, or need not be sent any more. */
  #isOver = false;

  /** @param socket the value of `NOTIFY_SOCKET` */
  constructor(socket: string, warn: (message: string) => void) {
    this.#socket = socket;
    this.#warn = warn;
  }

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
    const env = { ...process.env, NOTIFY_SOCKET: this.#socket };
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
    this.#warn(`the service manager can't be notified and will consider the server not started: ${why}`);
  }
}

/** Replaces control characters by blanks: a tab or a line break would begin another argument or message. */
function controlsAsBlanks(text: string): string {
  return text.replace(/\p{Cc}/gu, ' ');
}
