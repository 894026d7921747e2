import { makeSchema } from '../../engine/core/schema.js';
import type { Dataset } from '../model/dataset.js';

/** The fields of the records of `numbered`. */
export const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'level', type: 'string' },
  { name: 'message', type: 'string', index: true },
]);

/** `rows` records in order; each message has its number, spelled so that it occurs in no other. */
export function numbered(rows: number): Dataset {
  return {
    schema,
    records: Array.from({ length: rows }, (_, i) => ({
      position: { partition: 482136, ordinal: i + 1 },
      values: [
        BigInt(1_735_689_600_000 + i),
        i % 100 === 7 ? 'error' : 'info',
        `request ${(i * 2654435761) % 4294967296} of 10.0.0.${i % 200} is no. ${i} done`,
      ],
    })),
  };
}
