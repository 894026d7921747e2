import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../cli/here.js';
import { main } from '../cli/process.js';
import { shopAgent, shopLines, type ShopLog } from '../../bench/viewer/shop-log.js';

/** A folder with agents and records, and a server on it. */
export class ServedViewer {
  private child: ChildProcess | undefined;
  /** The address of the console. */
  address = '';

  constructor(readonly folder: string = mkdtempSync(join(tmpdir(), 'logstrata-viewer-'))) {
    mkdirSync(join(folder, 'agents'), { recursive: true });
    mkdirSync(join(folder, 'logs'), { recursive: true });
  }

  addAgent(name: string, yaml: string): void {
    writeFileSync(join(this.folder, `agents/${name}.yaml`), yaml);
  }

  configure(yaml: string): void {
    writeFileSync(join(this.folder, 'config.yaml'), yaml);
  }

  /** Runs a command to its end, which must be a success. */
  async command(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await run(this.folder, args);
    if (code !== 0) throw new Error(`logstrata ${args.join(' ')} ended with ${code}: ${stderr}`);
    return stdout;
  }

  /** Stores the records of a shop for an agent. */
  async loadShop(agent: string, log: ShopLog): Promise<void> {
    this.addAgent(agent, shopAgent.replace('shop', agent));
    const path = join(this.folder, `${agent}.jsonl`);
    writeFileSync(path, `${[...shopLines(log)].join('\n')}\n`);
    await this.command('load', agent, path);
    rmSync(path);
  }

  /** Stores records for an agent that reads JSON. */
  async loadLines(agent: string, records: readonly object[]): Promise<void> {
    const path = join(this.folder, `${agent}.jsonl`);
    writeFileSync(path, `${records.map((record) => JSON.stringify(record)).join('\n')}\n`);
    await this.command('load', agent, path);
    rmSync(path);
  }

  /** Appends lines to the log that an agent follows. */
  write(agent: string, records: readonly object[]): void {
    appendFileSync(
      join(this.folder, `logs/${agent}.log`),
      records.map((record) => `${JSON.stringify(record)}\n`).join(''),
    );
  }

  /** Starts the server, on its former port if it had one. */
  async start(...args: string[]): Promise<void> {
    const port = this.address === '' ? '0' : new URL(this.address).port;
    const child = spawn(
      process.execPath,
      [main, 'serve', '--listen', '127.0.0.1:0', '--console', `127.0.0.1:${port}`, ...args],
      { cwd: this.folder },
    );
    this.child = child;
    let shown = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (shown += text));
    while (!shown.includes('serving ')) {
      if (child.exitCode !== null) throw new Error(`the server ended: ${shown}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    this.address = /^viewer {3}(\S+)$/m.exec(shown)![1]!;
  }

  /** Kills the server; its data on disk stays. */
  async stop(): Promise<void> {
    const { child } = this;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  /** Ends the server and deletes everything. */
  async remove(): Promise<void> {
    await this.stop();
    if (existsSync(this.folder)) rmSync(this.folder, { recursive: true, force: true });
  }

  /** The server's answer to a request, as text. */
  async ask(path: string, token?: string): Promise<string> {
    const given = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const response = await fetch(`${this.address}${path}`, { headers: { connection: 'close', ...given } });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${text}`);
    return text;
  }

  /** The cursors of an agent's matching records, the oldest first. */
  async cursors(agent: string, query = ''): Promise<string[]> {
    const lines = await this.ask(`/api/query/${agent}?limit=1000000&fields=&${query}`);
    return [...lines.matchAll(/"_cursor":"([0-9a-f.]+)"/g)].map(([, cursor]) => cursor!);
  }
}
