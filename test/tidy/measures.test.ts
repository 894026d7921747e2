import { Session } from 'node:inspector/promises';
import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { append, noon, openOn, schema } from '../engine/store/memory-archive.js';
import { serve } from '../server/running.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { measuresOfSource, wayOfQuery, type Measure } from './measures.js';
import { root } from './source-files.js';

/** What each measure may be. A change that lowers a measure lowers its number here. */
const most: Readonly<Record<string, number>> = {
  // Groups of filters and `exists` need 59, and patterns, whose search has steps, 95.
  // 89 of them begin the answer of several agents and write its rows.
  // 255 let counts tell numbers of fields, and count several agents.
  // 125 read few rows of attached files by themselves.
  // 63 tell walks and followers what has become of the records of a table, and hide those that it has deleted.
  // 55 leave out rows that are not answered.
  'lines from a plan to an answer': 12_005,
  'task modules': 12,
  'steps that wait in generators': 0,
  'promises or none': 25,
  'classes that queue, lend or limit': 6,
  // Twelve are those of tokens, which were in a folder that this did not count before.
  // One of them is how many agents an answer may have.
  // One was among the parsers of counts, which the command line no longer loads with its help.
  'named limits': 172,
  'files that a query passes': 25,
  // Six of them have to be changed for a further type; the others name Arrow's, Parquet's or Go's.
  'files that name a field type': 7,
  'files that name the cluster': 0,
};

/** The files of the product of which a server runs a function while it answers one query. */
async function passedFiles(): Promise<Measure> {
  const archive = await openOn(new MemoryDirectory());
  const store = await archive.agent('web', schema);
  const rows = Array.from({ length: 500 }, (_, i) => [
    BigInt(noon - 1000 + i),
    BigInt(i % 7),
    null,
    `request ${i}`,
  ]);
  await append(store, rows, 'live');
  const { address } = await serve('node', store);
  const session = new Session();
  session.connect();
  const answer = async (limit: number): Promise<void> => {
    const response = await fetch(`${address}/api/query/nginx?limit=${limit}&status__eq=3`);
    expect((await response.text()).split('\n').length).toBeGreaterThan(50);
  };
  // The first answer loads what is loaded once, and is kept: another query is measured.
  await answer(100);
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  let found: string[] = [];
  // The upkeep of the store may run during an answer, so the one that passed the fewest files is taken.
  for (const limit of [99, 98, 97, 96, 95]) {
    await session.post('Profiler.takePreciseCoverage');
    await answer(limit);
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const passed = result
      .filter(({ functions }) => functions.some(({ ranges }) => ranges.some(({ count }) => count > 0)))
      .filter(({ url }) => url.startsWith('file:'))
      .map(({ url }) => relative(root, fileURLToPath(url)).split(sep).join('/'))
      .filter((path) => wayOfQuery.some((folder) => path.startsWith(`dist/${folder}/`)))
      .sort();
    if (found.length === 0 || passed.length < found.length) found = passed;
  }
  await session.post('Profiler.stopPreciseCoverage');
  session.disconnect();
  await archive.close();
  const definition = `modules of ${wayOfQuery.join(', ')} with a function that one query over HTTP calls (V8 coverage; one filter, hot rows)`;
  return { name: 'files that a query passes', definition, value: found.length, found };
}

it('no measure of the way from a query to its answer grows', async () => {
  const measures = [...measuresOfSource(), await passedFiles()];
  if (process.env.LOGSTRATA_MEASURES !== undefined)
    for (const { name, definition, value, found } of measures) {
      process.stdout.write(`${String(value).padStart(6)}  ${name}: ${definition}\n`);
      if (process.env.LOGSTRATA_MEASURES === 'all')
        for (const each of found) process.stdout.write(`          ${each}\n`);
    }
  const values = Object.fromEntries(measures.map(({ name, value }) => [name, value]));
  for (const [name, value] of Object.entries(values)) expect(value, name).toBeLessThanOrEqual(most[name]!);
});
