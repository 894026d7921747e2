import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Collection } from '../../agents/collect/collection.js';
import type { CollectLog, LogFacts } from '../../agents/collect/logs/collect-log.js';
import { frameBytesMax } from '../../agents/collect/line-frame.js';
import { realLogFiles } from '../../agents/collect/logs/log-files.js';
import { leasedMemoryBytes } from '../../engine/core/memory-lease.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { closeAtEnd, temporaryFolder } from '../agents/load/temporary.js';
import { openOn } from '../engine/store/memory-archive.js';
import { followedAgent, lineOf } from './followed-folder.js';

/** Without threads, and with threads that read the lines in shared memory. */
const threads = [0, 2];

it.each(threads)(
  'reports at once which logs are followed and how far they are behind, and later the progress of a backlog (%i threads)',
  async (count) => {
    const folder = await temporaryFolder();
    const archive = await openOn(new MemoryDirectory(), Date.now);
    closeAtEnd(() => archive.close());
    let lines = 0;
    let text = '';
    while (text.length < 2.5 * frameBytesMax) text += `${lineOf(lines++)} ${'x'.repeat(1000)}\n`;
    writeFileSync(join(folder, 'web.log'), text);

    const said: { message: string; facts: LogFacts }[] = [];
    let tellRead = (): void => {};
    const isRead = new Promise<void>((resolve) => (tellRead = resolve));
    let lentBytes = 0;
    const say = (facts: LogFacts, message: string): void => {
      lentBytes = Math.max(lentBytes, leasedMemoryBytes());
      said.push({ facts, message });
      if (message === 'all existing lines are read') tellRead();
    };
    const log: CollectLog = { info: say, warn: say, error: say };
    const workers = new WorkerPool(count);
    closeAtEnd(() => workers.close());
    const collection = new Collection({
      files: realLogFiles,
      workers,
      log,
      now: Date.now,
      timezone: 'UTC',
      limitLines: 0,
      redefine: () => Promise.resolve(),
      flushMs: 250,
      tailTimeoutMs: 5000,
      backlogEveryMs: 0,
    });
    closeAtEnd(() => collection.stop());
    const definition = followedAgent(folder);
    await collection.add({ definition, store: await archive.agent('app', definition.schema) });
    collection.start();
    await isRead;

    const [following, ...rest] = said;
    const lag = text.length;
    expect(following).toEqual({
      message: 'following',
      facts: { agent: 'app', folder, files: 1, lag, fields: 4 },
    });
    expect(rest.map(({ message }) => message)).toEqual(['reading a backlog', 'all existing lines are read']);
    const [reading, read] = rest.map(({ facts }) => facts);
    expect(reading!['lag']).toBeGreaterThan(0);
    expect(reading!['lag']).toBeLessThan(lag);
    expect(read).toMatchObject({ agent: 'app', lag: 0 });
    expect(collection.status()['app']!.records).toBe(lines);
    expect(lentBytes > frameBytesMax).toBe(count > 0);
    await collection.stop();
    expect(leasedMemoryBytes()).toBe(0);
  },
);
