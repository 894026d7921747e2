import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeSchema, type Schema } from '../../engine/terms/schema.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { openOn, textOf } from '../engine/store/memory-archive.js';
import { writeParquet } from '../foreign/write-parquet.js';
import type { Answerer } from './answerer.js';
import { beginInProcess } from './in-process.js';
import { runConformance } from './runner.js';

/** Each commit is a Parquet file that another program wrote, attached where it lies. */
const attachedAnswerer: Answerer = {
  name: 'the engine, all in attached files',
  isHttp: false,
  open: async (dataset) => {
    const folder = await mkdtemp(join(tmpdir(), 'logstrata-attached-'));
    const directory = new MemoryDirectory();
    const now = () => dataset.nowMs;
    const schema = withColumns(dataset.schema);
    let archive = await openOn(directory, now);
    let store = await archive.agent(dataset.name, schema);
    return {
      commit: async (commit) => {
        const path = join(folder, `${commit.name}.parquet`);
        const rows = commit.records.map(({ values }) => values);
        await writeParquet(path, schema, rows, { rowGroupRows: 3, pageBytes: 64 });
        const { problems } = await store.attach({
          adds: [{ path, format: 'parquet', constants: {} }],
          moves: [],
          removes: [],
        });
        if (problems.length > 0) throw problems[0]!.error;
      },
      begin: (request) =>
        beginInProcess(dataset, request, async (query) => {
          const { lines } = await store.scan(query);
          return () => textOf(lines);
        }),
      restart: async () => {
        await archive.close();
        archive = await openOn(directory, now);
        store = await archive.agent(dataset.name, schema);
      },
      compact: async () => {
        await store.compact();
      },
      close: async () => {
        await archive.close();
        await rm(folder, { recursive: true, force: true });
      },
    };
  },
};

/** The same fields, of columns that have other names and numbers for times. */
function withColumns({ fields }: Schema): Schema {
  return makeSchema(
    fields.map((field) => ({
      ...field,
      attached:
        field.type === 'time'
          ? { column: `@${field.name}`, unit: 'ms' }
          : { column: field.name.toUpperCase() },
    })),
  );
}

runConformance(attachedAnswerer);
