import { formatBytes, formatCount } from '../../server/cli/terminal.js';
import { figureBenchmark, numberOf, UsageFailure, type MeasuredLine } from '../runner.js';
import { peerPackageFolder } from '../sides/peer-package.js';
import { explainedText, explainQueries, type Explained } from './explained.js';
import { FarBed } from './far-bed.js';
import { measureCounts, measureId, measureLong, measureNear, measurePages, type Rounds } from './measures.js';

const usage = `Usage: npm run bench -- far [options]

What a far tier costs, with today's ClickHouse (chdb) in a process of its own on the same machine. The records of one archive are shipped
but for the newest day, and the same questions go to it and to an archive that has all of them near: pages, an id, counts, a million
records. Also says what three queries are compiled to, and what ClickHouse does with that. Needs chdb: node bench/peers/install.mjs clickhouse

  --rows N    records (default: 10,000,000, which take 15 GB of disk)
  --tiny      a few thousand records: whether it works, not how fast
  --out PATH  result, without ending (default: bench/results/far)
`;

const rowsUsual = 10_000_000;
const rowsTiny = 80_000;

function shippedLine({ shipping, serverVersion }: FarBed): MeasuredLine {
  const { rows, bytes, seconds, ownSeconds, serverSeconds } = shipping;
  const perSecond = rows / seconds;
  return {
    what: `shipped into ${serverVersion}`,
    target: '≥ 200,000 records/s',
    figure:
      `${formatCount(Math.round(perSecond))} records/s (${formatCount(rows)} records, ${formatBytes(bytes)}; ` +
      `processor ${ownSeconds.toFixed(1)} s here, ${serverSeconds.toFixed(1)} s there)`,
    values: { rows, bytes, seconds, ownSeconds, serverSeconds, perSecond },
  };
}

/** The line about the plan of a compiled query: the granules before and after its indexes. */
function explainedLine({ asked, indexes }: Explained): MeasuredLine {
  const last = indexes.at(-1);
  return {
    what: `granules that are read for \`${asked.replace(/[0-9a-f]{12,}/g, '…')}\``,
    target: '',
    figure: indexes
      .map(({ name, granules, granulesBefore }) => `${name}: ${granules} of ${granulesBefore}`)
      .join('; '),
    values: { granules: last?.granules ?? NaN, granulesBefore: indexes[0]?.granulesBefore ?? NaN },
  };
}

export const benchmark = figureBenchmark({
  name: 'far',
  usage,
  texts: ['rows'],
  measure: async (values, isSmall, { folder, say }) => {
    const rows = numberOf(values, 'rows', isSmall ? rowsTiny : rowsUsual, { max: 1e9 });
    if (peerPackageFolder('clickhouse', 'chdb') === undefined)
      throw new UsageFailure('chdb is not installed; run: node bench/peers/install.mjs clickhouse');
    const rounds: Rounds = isSmall ? { short: 3, long: 1 } : { short: 41, long: 3 };
    const bed = await FarBed.make(folder, rows, say);
    try {
      say('asks');
      const lines = [
        ...(await measureNear(bed, rounds)),
        ...(await measurePages(bed, rounds)),
        await measureId(bed, rounds),
        ...(await measureCounts(bed, rounds)),
        ...(await measureLong(bed, rounds)),
      ];
      const explained = await explainQueries(bed);
      process.stdout.write(`${explainedText(explained)}\n\n`);
      const about = `${formatCount(rows)} records of ${bed.days} days, ${formatCount(bed.shipping.rows)} of them far`;
      return {
        about,
        settings: { rows, days: bed.days, rounds, explained },
        lines: [shippedLine(bed), ...lines, ...explained.map(explainedLine)],
      };
    } finally {
      await bed.close();
    }
  },
});
