import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { caseCount, seed } from '../cases.js';
import { Random } from '../../bench/random.js';
import { FailingCalls } from './failing-calls.js';
import { LoopDisk } from './loop-disk.js';
import { NumberedService, summarise } from './numbered-service.js';

const cuts = caseCount(2, 500);

it(`power cuts lose nothing that a client has received, and each line is stored once (seed ${seed})`, async (context) => {
  const disk = LoopDisk.make(context);
  const random = new Random(seed);
  const service = new NumberedService(join(disk.folder, 'store'));
  const calls = new FailingCalls(disk.folder);
  const { program, client } = service;
  const live = async (ms: number): Promise<void> => {
    for (const end = performance.now() + ms; performance.now() < end;) {
      program.act(random, 200);
      await service.poll();
      await delay(10 * random.fraction());
    }
  };
  await service.start(calls.environment);
  for (let cut = 0; cut < cuts; cut++) {
    // In every other round a sync fails before the cut: its data is not on the disk, and must not be assumed to be.
    const place = { at: 1 + random.below(10), count: 1 + random.below(3) };
    if (cut % 2 === 1) calls.plan(['sync'], { action: 'fail', error: 'EIO' }, place);
    await live(100 + 600 * random.fraction());
    // On a busy machine it may never live long enough to store the lines that have accumulated.
    if (cut % 10 === 9) await service.catchUp();
    disk.cut();
    // Records that can no longer be stored must not be returned either.
    await live(50 * random.fraction());
    await service.kill();
    disk.restore();
    program.removeOld(client.caughtUp);
    calls.end();
    await service.start(calls.environment);
  }
  const outcome = await service.outcome();
  summarise('power cuts', cuts, outcome);
  expect(outcome).toEqual({ written: program.written, lost: 0, repeated: 0 });
  await service.stop();
});
