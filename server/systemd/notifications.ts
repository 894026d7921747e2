import { spawn, type ChildProcess } from 'node:child_process';

/** What is sent at once: `NAME=value` each. */
export type Assignments = Readonly<Record<string, string>>;

/** Somebody who passes messages on to the service manager. */
export interface Notifications {
  send(assignments: Assignments): void;
  /** No message comes any more; those that were sent still go out, also once this process has ended. */
  close(): void;
}

/** Bytes that wait for the helper, at most: messages are short, and there is one in some seconds. */
const waitingBytesMax = 64 * 1024;

/** The helper's own code for "there is no systemd-notify". */
const notFoundCode = 127;

/**
 * What the helper runs: one `systemd-notify` for each line, with what stands between tabs as its arguments. It ignores the signals that
 * systemd, or a terminal, sends to all processes of a service, since the last message comes behind them, and ends when its input does.
 */
const script = `trap '' HUP INT TERM
command -v systemd-notify >/dev/null || exit ${notFoundCode}
set -f
IFS='\t'
while read -r line; do systemd-notify $line; done`;

/**
 * Sends messages to a datagram socket, which Node has no means for, through a small shell that lives as long as this process. The shell is
 * started by the first message: a process that has taken gigabytes blocks for longer while it starts another one.
 */
export class ShellNotifications implements Notifications {
  readonly #socket: string;
  readonly #warn: (message: string) => void;
  #helper: ChildProcess | undefined;
  /** It can't be had, or is not needed any more. */
  #isOver = false;

  /** @param socket is what `NOTIFY_SOCKET` says */
  constructor(socket: string, warn: (message: string) => void) {
    this.#socket = socket;
    this.#warn = warn;
  }

  send(assignments: Assignments): void {
    if (this.#isOver) return;
    this.#helper ??= this.#start();
    const { stdin } = this.#helper;
    if (stdin === null || stdin.writableLength > waitingBytesMax) return;
    const words = Object.entries(assignments).map(([name, value]) => `${name}=${oneLine(value)}`);
    stdin.write(`${words.join('\t')}\n`);
  }

  close(): void {
    this.#isOver = true;
    this.#helper?.stdin?.end();
  }

  #start(): ChildProcess {
    const env = { ...process.env, NOTIFY_SOCKET: this.#socket };
    const helper = spawn('/bin/sh', ['-c', script], { env, stdio: ['pipe', 'ignore', 'ignore'] });
    // What can't be written is told by the end of the helper.
    helper.stdin?.on('error', () => undefined);
    helper.on('error', (error) => this.#lose(helper, error.message));
    helper.on('exit', (code) => {
      this.#lose(helper, code === notFoundCode ? 'systemd-notify is not installed' : undefined);
    });
    // Neither may keep this process from ending.
    helper.unref();
    (helper.stdin as { unref?: () => void } | null)?.unref?.();
    return helper;
  }

  /** The helper has gone: the next message starts another one, unless it is said why that would be of no use. */
  #lose(helper: ChildProcess, why: string | undefined): void {
    if (this.#isOver || this.#helper !== helper) return;
    this.#helper = undefined;
    if (why === undefined) return;
    this.#isOver = true;
    this.#warn(
      `the service manager is not told how the server is, and will take it for one that does not start: ${why}`,
    );
  }
}

/** Control characters are blanks: a tab or the end of a line would begin another word or message. */
function oneLine(text: string): string {
  return text.replace(/\p{Cc}/gu, ' ');
}
