import { it } from 'vitest';
import { isLong, seed } from '../cases.js';
import { ChdbDoor } from '../../bench/far/chdb-door.js';
import { Random } from '../../bench/random.js';
import { describeWithClickHouse } from './clickhouse-server.js';
import { FarClusterBed } from './far-cluster-bed.js';
import { freshName } from './far-store.js';
import { killIn, killRounds, type Victim } from './kill-rounds.js';
import { describeWithChdb } from './with-chdb.js';

const rounds = Number(process.env['LOGSTRATA_ROUNDS'] ?? 200);

/** It waits several times for what a server does only after a minute. */
const timeout = isLong ? 3_600_000 : 1_000_000;

/** Logstrata most often, ZooKeeper most rarely. */
function victims(): Victim[] {
  const random = new Random(seed);
  return Array.from({ length: rounds }, () => {
    const drawn = random.below(20);
    if (drawn === 0) return 'zookeeper';
    return drawn < 5 ? 'server' : 'logstrata';
  });
}

describeWithClickHouse(
  'kills at random moments while records are shipped to a cluster and paged through',
  () => {
    it(`lose and repeat no record, and units are shipped (seed ${seed})`, { timeout }, async () => {
      const bed = await FarClusterBed.start(isLong ? 2 : 1, 2);
      try {
        const killed: readonly Victim[] = isLong ? victims() : ['logstrata', 'server'];
        await killRounds(bed.settings(freshName()), killed, killIn(bed), seed);
      } finally {
        await bed.close();
      }
    });
  },
);

if (isLong) {
  describeWithChdb(
    'kills at random moments while records are shipped to a current ClickHouse and paged through',
    () => {
      it(`lose and repeat no record, and units are shipped (seed ${seed})`, async () => {
        const door = await ChdbDoor.start();
        try {
          const alone = Array.from({ length: Math.ceil(rounds / 4) }, (): Victim => 'logstrata');
          await killRounds(door.settings(), alone, () => Promise.reject(new Error('only Logstrata')), seed);
        } finally {
          await door.close();
        }
      });
    },
  );
}
