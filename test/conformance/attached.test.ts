import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeSchema, type Schema } from '../../engine/core/schema.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { openOn, textOf } from '../engine/store/memory-archive.js';
import type { OpenOptions } from '../../engine/archive/open-options.js';
import type { FileToAttach } from '../../engine/store/attached/attached-list.js';
import { parquetBytes } from '../foreign/write-parquet.js';
import { storageOf } from '../objects/object-storage.js';
import { S3Server } from '../objects/s3-server.js';
import type { Answerer } from './answerer.js';
import { beginInProcess } from './in-process.js';
import { runConformance } from './runner.js';

/** The folder for the files of a run. */
interface Files {
  readonly options: Partial<OpenOptions>;
  /** Writes a file, and returns the entry that attaches it. */
  put(name: string, bytes: Uint8Array): Promise<FileToAttach>;
  close(): Promise<void>;
}

async function filesOnDisk(): Promise<Files> {
  const folder = await mkdtemp(join(tmpdir(), 'logstrata-attached-'));
  return {
    options: {},
    put: async (name, bytes) => {
      const path = join(folder, name);
      await writeFile(path, bytes);
      return { path, format: 'parquet', constants: {} };
    },
    close: () => rm(folder, { recursive: true, force: true }),
  };
}

async function objects(): Promise<Files> {
  const server = await S3Server.start();
  const folder = await mkdtemp(join(tmpdir(), 'logstrata-attached-'));
  const storage = storageOf(server, folder);
  return {
    options: { objects: storage },
    put: async (name, bytes) => {
      server.put(name, bytes);
      const path = server.pathOf(name);
      return { path, format: 'parquet', constants: {}, object: await storage.stamp(path) };
    },
    close: async () => {
      await storage.close();
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Each commit is a Parquet file of another program, attached in place. */
const answererOf = (name: string, openFiles: () => Promise<Files>): Answerer => ({
  name,
  isHttp: false,
  open: async (dataset) => {
    const files = await openFiles();
    const directory = new MemoryDirectory();
    const now = () => dataset.nowMs;
    const schema = withColumns(dataset.schema);
    const open = () => openOn(directory, now, undefined, files.options);
    let archive = await open();
    let store = await archive.agent(dataset.name, schema);
    return {
      commit: async (commit) => {
        const rows = commit.records.map(({ values }) => values);
        const bytes = parquetBytes(schema, rows, { rowGroupRows: 3, pageBytes: 64 });
        const adds = [await files.put(`${commit.name}.parquet`, bytes)];
        const { problems } = await store.attach({ adds, moves: [], removes: [] });
        if (problems.length > 0) throw problems[0]!.error;
      },
      begin: (request) =>
        beginInProcess(dataset, request, async (query) => {
          const { lines } = await store.scan(query);
          return () => textOf(lines);
        }),
      restart: async () => {
        await archive.close();
        archive = await open();
        store = await archive.agent(dataset.name, schema);
      },
      compact: async () => {
        await store.compact();
      },
      close: async () => {
        await archive.close();
        await files.close();
      },
    };
  },
});

/** The same fields, read from columns with other names and with numbers for times. */
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

runConformance(answererOf('the engine, all in attached files', filesOnDisk));
runConformance(answererOf('the engine, all in attached objects', objects));
