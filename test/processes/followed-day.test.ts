import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { caseCount, seed } from '../cases.js';
import { between, seededRandom } from '../model/random.js';
import { itUnless } from '../needs.js';
import { Nginx, nginxAgent, rotate, whyNoNginx } from './nginx.js';
import { containerAgent, runContainers, WrittenLines } from './numbered-container.js';
import { allNumbers, allRead, numbersFolder, range, serveNumbers, type Served } from './numbered-log.js';

const kills = caseCount(6, 100);

const agents = ['docker', 'pods'] as const;

/** Containers of each agent that write at the same time. Those that have ended stay until all is stored that they have written. */
const containers = 3;

const pageRecords = 2000;

/** The texts of all records of an agent. */
async function allTexts(served: Served, agent: string): Promise<string[]> {
  const texts: string[] = [];
  for (let after = '0000000000000000'; ;) {
    const page = await served.records(agent, `after=${after}&limit=${pageRecords}`);
    if (page.length === 0) return texts;
    for (const { text } of page) texts.push(String(text));
    after = String(page.at(-1)!._cursor);
  }
}

itUnless(
  whyNoNginx,
  `lines of nginx and of containers that come, rotate and go are stored once through ${kills} kills (seed ${seed})`,
  async () => {
    const random = seededRandom(seed);
    const folder = numbersFolder();
    writeFileSync(join(folder, 'agents/numbers.yaml'), nginxAgent);
    for (const agent of agents) {
      mkdirSync(join(folder, agent));
      writeFileSync(
        join(folder, `agents/${agent}.yaml`),
        containerAgent(agent === 'docker' ? 'docker' : 'cri'),
      );
    }
    const nginx = await Nginx.start(folder, 'buffer=8k flush=1s');
    let served = await serveNumbers(folder);
    let isOver = false;
    const written = { docker: new WrittenLines(), pods: new WrittenLines() };
    const write = agents.flatMap((agent) =>
      range(0, containers).map((i) => {
        const isStored = async (piece: string): Promise<boolean> => {
          const found = await served.records(agent, `n__eq=${Number.parseInt(piece)}`).catch(() => []);
          return found.some(({ text }) => String(text).includes(piece));
        };
        const context = { random: seededRandom(between(random, 0, 1e9)), written: written[agent], isStored };
        const name = `${agent.slice(0, 1)}${'abc'[i]}`;
        return runContainers(agent === 'docker' ? 'docker' : 'cri', folder, name, context, () => isOver);
      }),
    );
    const rotations = async (): Promise<void> => {
      for (; !isOver; await delay(between(random, 200, 2500)))
        await rotate(folder, 'create\n compress\n delaycompress');
    };
    const killing = async (): Promise<void> => {
      for (let i = 0; i < kills; i++) {
        await delay(between(random, 0, 3000));
        served.process.child.kill('SIGKILL');
        await served.process.finished;
        await delay(between(random, 0, 300));
        served = await serveNumbers(folder);
      }
    };
    nginx.startLoad(2, 3);
    const writing = Promise.all([...write, rotations()]);
    await killing().finally(() => (isOver = true));
    await writing;
    await nginx.stop();

    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      served.process.child.kill(signal);
      await served.process.finished;
      served = await serveNumbers(folder);
      await allRead(folder);
      const numbers = await allNumbers(served);
      const repeated = numbers.filter((n, i) => numbers[i + 1] === n);
      const known = new Set(numbers);
      const lost = range(1, nginx.answered + 1).filter((n) => !known.has(n));
      expect({ lost, repeated }).toEqual({ lost: [], repeated: [] });
      expect(numbers.length).toBe(nginx.answered);
      for (const agent of agents) {
        await allRead(folder, agent, agent);
        const texts = await allTexts(served, agent);
        const expected = { lost: [], repeated: [], divided: [], foreign: [] };
        expect({ agent, ...written[agent].compare(texts) }).toEqual({ agent, ...expected });
      }
    }
  },
);
