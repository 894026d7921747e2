import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import { missingProgram, notLinux } from '../needs.js';
import { until } from './numbered-log.js';

/** Why nginx and logrotate can't be used here, or null. */
export const whyNoNginx = notLinux ?? missingProgram('nginx', 'logrotate');

/** The agent `numbers`, whose records are the requests of an nginx, which have numbers. */
export const nginxAgent = `fields:
  - name: time
    timestamp: { format: common }
  - name: n
    type: int
file:
  path: '../logs/access\\.log'
  format: plain
  regex: '\\[(?P<time>[^\\]]+)\\] "GET /(?P<n>\\d+) '
`;

const requestsBetween = 1500;
const connections = 16;

/** An nginx that writes a line for each request, and its clients. */
export class Nginx {
  /** Number of requests that were answered. The requests have the numbers from 1 on. */
  answered = 0;
  private begun = 0;
  private isStopping = false;
  private lanes: Promise<unknown> = Promise.resolve();
  private readonly agent = new Agent({ keepAlive: true, maxSockets: connections });

  private constructor(
    private readonly socketPath: string,
    private readonly child: ChildProcess,
  ) {}

  /** @param buffer how it buffers the lines of its log */
  static async start(folder: string, buffer: string): Promise<Nginx> {
    const socket = join(folder, 'nginx.sock');
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
    const config = `${process.getuid!() === 0 ? 'user root;' : ''}
      daemon off; worker_processes 8; pid ${folder}/nginx.pid; error_log ${folder}/nginx.error;
      events { worker_connections 256; }
      http {
        ${paths.map((path) => `${path}_temp_path ${folder}/${path};`).join(' ')}
        access_log ${folder}/logs/access.log combined ${buffer}; keepalive_requests 1000000;
        server { listen unix:${socket}; location / { return 204; } }
      }`;
    writeFileSync(join(folder, 'nginx.conf'), config);
    const args = ['-c', join(folder, 'nginx.conf'), '-e', join(folder, 'nginx.error')];
    const nginx = new Nginx(socket, spawn('nginx', args, { stdio: 'ignore' }));
    onTestFinished(() => nginx.stop());
    await until(() => existsSync(join(folder, 'nginx.pid')) && existsSync(socket), 'nginx listens');
    return nginx;
  }

  /** @param pauseMs how long each of the clients waits between two requests */
  startLoad(clients = connections, pauseMs = 0): void {
    const lane = async (): Promise<void> => {
      while (!this.isStopping) {
        await this.request(++this.begun);
        this.answered++;
        if (pauseMs > 0) await delay(pauseMs);
      }
    };
    this.lanes = Promise.all(Array.from({ length: clients }, lane));
  }

  private request(n: number): Promise<void> {
    const { agent, socketPath } = this;
    return new Promise((resolve, reject) => {
      const request = get({ agent, socketPath, path: `/${n}` }, (answer) =>
        answer.resume().on('end', resolve),
      );
      request.on('error', reject);
    });
  }

  /** Waits until the clients have made some more requests. */
  async moreRequests(): Promise<void> {
    const before = this.answered;
    await until(() => this.answered >= before + requestsBetween, 'requests are answered');
  }

  /** Ends the requests, and nginx once it has written the lines of all of them. */
  async stop(): Promise<void> {
    this.isStopping = true;
    await this.lanes;
    this.agent.destroy();
    const { child } = this;
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGQUIT');
    await once(child, 'exit');
  }
}

/** Has logrotate rotate the log of the nginx of a folder. */
export async function rotate(folder: string, options: string): Promise<void> {
  const config = join(folder, 'logrotate.conf');
  const reopen = `postrotate\n kill -USR1 $(cat ${folder}/nginx.pid)\n endscript`;
  const text = `${folder}/logs/access.log {\n rotate 1000\n ${options}\n ${options === 'copytruncate' ? '' : reopen}\n}\n`;
  writeFileSync(config, text, { mode: 0o600 });
  const child = spawn('logrotate', ['-f', '-s', join(folder, 'state'), config], { stdio: 'ignore' });
  expect(await once(child, 'exit')).toEqual([0, null]);
}
