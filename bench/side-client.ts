import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { packageRoot } from '../server/cli/options.js';
import type { SideName, SideOptions, SideReplies, SideRequest } from './side.js';

interface Waiting {
  readonly resolve: (reply: never) => void;
  readonly reject: (error: Error) => void;
}

/** Controls the process of a side from the benchmark. */
export class SideClient {
  readonly name: SideName;
  private readonly child: ChildProcess;
  private readonly waiting = new Map<number, Waiting>();
  private lastId = 0;
  private stopping = false;

  private constructor(options: SideOptions) {
    this.name = options.side;
    this.child = fork(join(packageRoot(), 'dist/bench/side-process.js'), [JSON.stringify(options)], {
      // Its standard output must not mix with the table of the benchmark.
      stdio: ['ignore', 2, 2, 'ipc'],
      serialization: 'advanced',
    });
    this.child.on('message', (message: { id: number; reply: never; failure?: string }) => {
      const waiting = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (message.failure === undefined) waiting?.resolve(message.reply);
      else waiting?.reject(new Error(`${this.name}: ${message.failure}`));
    });
    this.child.on('exit', (code, signal) => {
      const error = new Error(`the process of ${this.name} ended with ${signal ?? code}`);
      if (!this.stopping) for (const { reject } of this.waiting.values()) reject(error);
      this.waiting.clear();
    });
  }

  /** Starts the process. Rejects where the program of the side is not available. */
  static async start(options: SideOptions): Promise<SideClient> {
    const client = new SideClient(options);
    await new Promise((resolve, reject) => client.waiting.set(0, { resolve, reject }));
    return client;
  }

  /** Sends a request to the process. Rejects with the error message of the process. */
  request<Kind extends SideRequest['kind']>(
    request: Extract<SideRequest, { kind: Kind }>,
  ): Promise<SideReplies[Kind]> {
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.child.send({ id, request });
    });
  }

  /** Ends the process. */
  async stop(): Promise<void> {
    this.stopping = true;
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    if (this.child.connected) this.child.disconnect();
    await ended;
  }
}
