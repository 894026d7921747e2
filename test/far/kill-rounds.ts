import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { Random } from '../../bench/random.js';
import { FarWalk } from './far-walk.js';
import { ShippedLog } from './shipped-log.js';
import type { FarClusterBed } from './far-cluster-bed.js';
import type { FarSettings } from '../../engine/store/far/far-place.js';

export type Victim = 'logstrata' | 'server' | 'zookeeper';

/** Kills what is not Logstrata, and gives what brings it back: then rows are taken again. */
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

/** Longest time in a round until something is killed: a segment has been shipped by then, now and then. */
const untilKillMs = 2500;

/** Records that a round may load beside those of the others, and how often they are more than one insertion takes. */
const rowsMax = 300;
const manyRows = 66_000;
const manyRounds = 25;

/** After so many rounds it is said how far they have come: all of them take hours. */
const toldRounds = 10;

/**
 * Rounds in which records are loaded, shipped by a real server and paged through all the while, and something is killed at a random moment.
 * After each, everything is answered, once. Fails where an answer is anything but whole or refused, or where no unit was ever shipped.
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
    // In the first round something is shipped for sure. After a long segment all is, before anything is killed: no round is long enough for it,
    // and it would hold up all that is newer.
    if (round === 0) await expect.poll(async () => (await log.shipped()).units).toBeGreaterThan(0);
    else if (round % manyRounds === 0) await allShipped(log);
    else await delay(untilKillMs * random.fraction());
    const back = victim === 'logstrata' ? undefined : await kill(victim, random);
    // The others go on without it for a while.
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
  // No row is there that nobody knows of, and attempts that came to nothing are dropped.
  expect(await log.verified()).toMatch(/^ok .*\n$/);
  await expect.poll(async () => (await log.shipped()).leftovers).toBe(0);
  expect(await log.verified()).toMatch(/^ok .*\n$/);
}

/** All but the newest record is shipped, after a while. */
async function allShipped(log: ShippedLog): Promise<void> {
  await expect
    .poll(async () => (await log.shipped()).onlyRecords, { timeout: 250_000 })
    .toBe(log.records - 1);
}
