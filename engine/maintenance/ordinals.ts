import { LogstrataError } from '../terms/errors.js';
import { ordinalMax, repairOrdinalStep } from '../terms/limits.js';
import type { CommittedValues } from '../store/manifest/committed-values.js';
import type { Findings } from './examination.js';

/**
 * An ordinal that was certainly never assigned, in any partition, for when the manifest that counted ordinals is lost. Throws `limit` if so
 * many manifests have been rebuilt that no such ordinal is left.
 */
export function firstFreeOrdinal({ base, segments }: Findings, values: CommittedValues): number {
  let highest = base?.ordinalsFrom ?? 1;
  for (const [, next] of values.nextOrdinals()) highest = Math.max(highest, next);
  for (const { entry } of segments)
    for (const { firstOrdinal, rows } of entry.runs) highest = Math.max(highest, firstOrdinal + rows);
  const first = (Math.floor(highest / repairOrdinalStep) + 1) * repairOrdinalStep + 1;
  if (first + repairOrdinalStep > ordinalMax)
    throw new LogstrataError('limit', `no ordinals are left that were certainly never used (at ${highest})`);
  return first;
}
