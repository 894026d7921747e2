import { expect, describe, it } from 'vitest';
import { peerPackageFolder } from '../../bench/sides/peer-package.js';

/** Tests on a current ClickHouse within the process. Where it is not installed, one test takes their place and says so. */
export function describeWithChdb(title: string, tests: () => void): void {
  if (peerPackageFolder('clickhouse', 'chdb') !== undefined) describe(title, tests);
  else
    it(`${title}: not tried, since chdb is not installed (node bench/peers/install.mjs clickhouse)`, () => {
      expect(peerPackageFolder('clickhouse', 'chdb')).toBeUndefined();
    });
}
