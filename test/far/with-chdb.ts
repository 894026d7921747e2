import { expect, describe, it } from 'vitest';
import { peerPackageFolder } from '../../bench/sides/peer-package.js';

/** Tests on today's ClickHouse in this process. Where it is not installed, one test stands for them and says so. */
export function describeWithChdb(title: string, tests: () => void): void {
  if (peerPackageFolder('clickhouse', 'chdb') !== undefined) describe(title, tests);
  else
    it(`${title}: not tried, since chdb is not installed (node bench/peers/install.mjs clickhouse)`, () => {
      expect(peerPackageFolder('clickhouse', 'chdb')).toBeUndefined();
    });
}
