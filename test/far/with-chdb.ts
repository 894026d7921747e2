import { peerPackageFolder } from '../../bench/sides/peer-package.js';
import { describeUnless, unlessRequired } from '../needs.js';

/** Why the tests on a current ClickHouse within the process can't run here, or null. */
export const missingChdb = unlessRequired(
  'chdb',
  peerPackageFolder('clickhouse', 'chdb') === undefined
    ? 'chdb is not installed (node bench/peers/install.mjs clickhouse)'
    : null,
);

/** Tests on a current ClickHouse within the process. */
export function describeWithChdb(title: string, tests: () => void): void {
  describeUnless(missingChdb, title, tests);
}
