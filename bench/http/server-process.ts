import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';

/** Linux reports the CPU time of a process in units of 1/100 s, whatever its timer frequency. */
const ticksPerSecond = 100;

/** A server in a process of its own. */
export class ServerProcess {
  private constructor(
    private readonly child: ChildProcess,
    /** `http://host:port` */
    readonly origin: string,
    /** The transport that it prints. */
    readonly transport: string,
    /** Address of its console; empty where there is none. */
    readonly console: string,
  ) {}

  /**
   * Starts `script` in `folder` and waits until it prints its address. Rejects with its output where it ends before. With `detached`,
   * Ctrl-C at the terminal does not reach it.
   */
  static async start(
    script: string,
    args: readonly string[],
    folder = process.cwd(),
    detached = false,
  ): Promise<ServerProcess> {
    const child = spawn(process.execPath, [script, ...args], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached,
    });
    let printed = '';
    const announced = new Promise<ServerProcess>((resolve, reject) => {
      const take = (text: string): void => {
        printed += text;
        const found = /serving +(http:\/\/[^/\s]+)(?:\/\S*)? +\((\w+)[):]/.exec(printed);
        if (found === null) return;
        const console = /^viewer +(http:\S+)$/m.exec(printed)?.[1] ?? '';
        resolve(new ServerProcess(child, found[1]!, found[2]!, console));
      };
      child.stdout.setEncoding('utf8').on('data', take);
      child.stderr.setEncoding('utf8').on('data', take);
      child.once('error', reject);
      child.once('exit', (code) => reject(new Error(`${script} ended with ${code}:\n${printed}`)));
    });
    return announced;
  }

  /** CPU time that it has used so far, in seconds; NaN where the system does not provide it. */
  get cpuSeconds(): number {
    try {
      const stat = readFileSync(`/proc/${this.child.pid}/stat`, 'latin1');
      // The name of the program is in parentheses and may contain blanks. User and system time are fields 12 and 13 after it.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
    } catch {
      return NaN;
    }
  }

  /** CPU time of its threads so far, in milliseconds with microsecond resolution; NaN where the system does not provide it. */
  get busyMs(): number {
    const folder = `/proc/${this.child.pid}/task`;
    try {
      const times = readdirSync(folder).map((thread) =>
        Number(readFileSync(`${folder}/${thread}/schedstat`, 'latin1').split(' ')[0]),
      );
      return times.reduce((sum, nanoseconds) => sum + nanoseconds, 0) / 1e6;
    } catch {
      return NaN;
    }
  }

  /** Resident memory in bytes; NaN where the system does not provide it. */
  get residentBytes(): number {
    try {
      const status = readFileSync(`/proc/${this.child.pid}/status`, 'latin1');
      return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1024;
    } catch {
      return NaN;
    }
  }

  /** Number of open files, sockets and other handles; NaN where the system does not provide it. */
  get openHandles(): number {
    try {
      return readdirSync(`/proc/${this.child.pid}/fd`).length;
    } catch {
      return NaN;
    }
  }

  /** Whether the process has ended. */
  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** Sends a signal and waits until the process has ended. */
  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    if (this.hasEnded) return;
    const ended = once(this.child, 'exit');
    this.child.kill(signal);
    await ended;
  }
}
