import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { caseCount, seed } from '../cases.js';
import { Random } from '../../bench/random.js';
import { NumberedService, summarise } from './numbered-service.js';

const kills = caseCount(4, 1000);

it(`kill -9 at any moment loses and repeats nothing while logs are written, rotated and followed (seed ${seed})`, async () => {
  const random = new Random(seed);
  const service = new NumberedService();
  const { program, client } = service;
  const live = async (ms: number): Promise<void> => {
    for (const end = performance.now() + ms; performance.now() < end;) {
      program.act(random, 200);
      if (service.isUp) await service.poll();
      await delay(10 * random.fraction());
    }
  };
  // An agent is followed from the first start on: logs that were rotated before are not read.
  await service.start();
  await service.kill();
  for (let kill = 0; kill < kills; kill++) {
    await service.begin();
    // One in five is killed before its start is complete.
    if (random.below(5) > 0) await service.process!.shows('serving ');
    await live(400 * random.fraction());
    // On a busy machine it may never live long enough to store the lines that have accumulated.
    if (kill % 10 === 9) await service.catchUp();
    await service.kill();
    program.removeOld(client.caughtUp);
    // The logs are written on without it.
    if (random.below(2) === 0) await live(20 * random.fraction());
  }
  await service.start();
  const outcome = await service.outcome();
  summarise('kill -9 at random moments', kills, outcome);
  expect(outcome).toEqual({ written: program.written, lost: 0, repeated: 0 });
});
