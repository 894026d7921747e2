import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { Random } from '../../bench/random.js';
import { FarWalk } from './far-walk.js';
import { ShippedLog } from './shipped-log.js';
import type { FarClusterBed } from './far-cluster-bed.js';
import type { FarSettings } from '../../engine/far/far-transport.js';

export type Victim = 'logstrata' | 'server' | 'zookeeper';

/** Kills a process other than Logstrata; returns a function that restarts it and waits until rows are accepted again. */
type Kill = (victim: Exclude<Victim, 'logstrata'>, random: Random) => Promise<() => Promise<void>>;

/** Kills a server of a cluster, or its ZooKeeper. */
export function killIn(bed: FarClusterBed): Kill {
  return async (victim, random) => {
    const servers = bed.servers.flat();
    const program = victim === 'zookeeper' ? bed.zookeeper! : random.pick(servers);
    await program.end();
    return async () => {
      await program.start();
      for (const server of servers) await server.writable();
    };
  };
}

/** Longest time in a round before the kill; a segment has been shipped by then in some rounds. */
const untilKillMs = 2500;

/** Additional records that a round may load, and how often they exceed one insertion. */
const rowsMax = 300;
const manyRows = 66_000;
const manyRounds = 25;

/**
 * How long the server may take for what it does in the background. After a failure it tries again only after a minute, and it drops a failed
 * attempt only once no reader can be reading it, which is after more than a minute too.
 */
const background = { timeout: 250_000 };

/** Progress is printed after this many rounds, because all of them take hours. */
const toldRounds = 10;

/**
 * Rounds in which records are loaded, shipped by a real server and paged through, until a process is killed at a random moment. After each
 * round, every record must be answered exactly once. Fails if an answer is neither complete nor refused, or if no unit was ever shipped.
 */
export async function killRounds(
  settings: FarSettings,
  victims: readonly Victim[],
  kill: Kill,
  seed: number,
): Promise<void> {
  const random = new Random(seed);
  const log = new ShippedLog(settings);
  const walk = new FarWalk(log, random);
  let units = 0;
  let shippingRounds = 0;
  const killed = { logstrata: 0, server: 0, zookeeper: 0 };
  await log.loadNewest();
  await log.start();
  for (const [round, victim] of victims.entries()) {
    const isLarge = round % manyRounds === manyRounds - 1;
    await log.load(isLarge ? 1 : 1 + random.below(3), isLarge ? manyRows : 1 + random.below(rowsMax));
    walk.begin();
    // The first round waits for a shipped unit. The round after a long segment waits until everything is shipped: no round is long enough to
    // ship it before the kill, and it would delay all newer segments.
    if (round === 0)
      await expect.poll(async () => (await log.shipped()).units, background).toBeGreaterThan(0);
    else if (round % manyRounds === 0) await allShipped(log);
    else await delay(untilKillMs * random.fraction());
    const back = victim === 'logstrata' ? undefined : await kill(victim, random);
    // The others run without it for a while.
    if (back !== undefined) await delay(1000 * random.fraction());
    await back?.();
    await log.kill();
    await walk.end();
    killed[victim]++;
    await log.start();
    await walk.whole();
    const { units: now } = await log.shipped();
    if (now > units) shippingRounds++;
    units = now;
    if ((round + 1) % toldRounds === 0)
      process.stdout.write(
        `${round + 1} of ${victims.length} rounds (killed: ${JSON.stringify(killed)}): ${units} units shipped, ${log.records} records, ` +
          `${walk.pages} whole pages, ${walk.refused} refused (seed ${seed})\n`,
      );
  }
  await allShipped(log);
  await walk.whole();
  const { units: all, leftovers } = await log.shipped();
  process.stdout.write(
    `${victims.length} rounds (killed: ${JSON.stringify(killed)}): ${all} units shipped, ${units} of them in ${shippingRounds} rounds, ` +
      `${log.records} records, ${walk.pages} whole pages, ${walk.refused} refused, ${leftovers} attempts to drop (seed ${seed})\n`,
  );
  expect(units).toBeGreaterThan(0);
  // No unknown row is left, and failed attempts are dropped.
  expect(await log.verified()).toMatch(/^ok .*\n$/);
  await expect.poll(async () => (await log.shipped()).leftovers, background).toBe(0);
  expect(await log.verified()).toMatch(/^ok .*\n$/);
}

/** Waits until all but the newest record is shipped. */
async function allShipped(log: ShippedLog): Promise<void> {
  await expect.poll(async () => (await log.shipped()).onlyRecords, background).toBe(log.records - 1);
}
