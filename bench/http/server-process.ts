import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** A server in a process of its own. */
export class ServerProcess {
  private constructor(
    private readonly child: ChildProcess,
    /** `http://host:port` */
    readonly origin: string,
    /** `uws` or `node`. */
    readonly transport: string,
  ) {}

  /** Starts `script` and waits until it says where it serves. Rejects with what it printed when it ends before. */
  static async start(script: string, args: readonly string[]): Promise<ServerProcess> {
    const child = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    let printed = '';
    const announced = new Promise<ServerProcess>((resolve, reject) => {
      const take = (text: string): void => {
        printed += text;
        const found = /serving +(http:\/\/[^/\s]+)\S* +\((\w+)\)/.exec(printed);
        if (found !== null) resolve(new ServerProcess(child, found[1]!, found[2]!));
      };
      child.stdout.setEncoding('utf8').on('data', take);
      child.stderr.setEncoding('utf8').on('data', take);
      child.once('error', reject);
      child.once('exit', (code) => reject(new Error(`${script} ended with ${code}:\n${printed}`)));
    });
    return announced;
  }

  /** Ends it, and waits until it has. */
  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    this.child.kill('SIGTERM');
    await ended;
  }
}
