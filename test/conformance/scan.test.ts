import { executeScan } from '../../engine/scan/answer.js';
import { answerOf } from '../model/answer.js';
import { makeSnapshot, type Layout } from '../model/model-snapshot.js';
import { recordsAnswerer } from './in-process.js';
import { runConformance } from './runner.js';

runConformance(
  recordsAnswerer('the naive model', ({ schema }, records, query) => {
    return () => Promise.resolve(answerOf({ schema, records }, query));
  }),
);

const layouts: Layout[] = [
  { seed: 1, segments: 1, rowGroupRows: 64, statistics: 'exact' },
  { seed: 2, segments: 3, rowGroupRows: 2, statistics: 'exact' },
  { seed: 3, segments: 2, rowGroupRows: 3, statistics: 'chance' },
];

for (const layout of layouts) {
  const name = `the scan (${layout.segments} segments, row groups of ${layout.rowGroupRows})`;
  runConformance(
    recordsAnswerer(name, ({ schema }, records, query) => {
      const { lines } = executeScan(makeSnapshot({ schema, records }, layout), query);
      return async () => {
        const pieces: Uint8Array[] = [];
        for await (const piece of lines) pieces.push(piece);
        return Buffer.concat(pieces).toString('utf8');
      };
    }),
  );
}
