import { isSameFooter, type ForeignFile } from '../../foreign/foreign-file.js';
import { DamageError, isLogstrataError } from '../../core/errors.js';
import { describedChunksMax } from '../../core/limits.js';
import type { Directory } from '../disk/directory.js';
import type { AttachedFile } from './attached-list.js';
import { readFacts, type IndexFacts } from './file-index.js';
import type { ForeignWork } from './foreign-work.js';
import { assertSameFile } from './plan-file.js';
import { spansOfFile } from './span-placements.js';

/** The metadata of an attached file. */
export interface Description {
  /** The file's own metadata. */
  readonly file: ForeignFile;
  /** The facts of its index; null if there is no index or it is damaged, which `verify` reports. */
  readonly facts: IndexFacts | null;
}

/**
 * A cache of the metadata of attached files. It is read when first needed and kept in memory up to a limit; the least recently used is
 * dropped first.
 */
export class Descriptions {
  /** By id of the file, least recently used first. */
  readonly #known = new Map<string, Description>();
  readonly #underWay = new Map<string, Promise<Description>>();
  #chunks = 0;

  constructor(
    private readonly directory: Directory,
    private readonly agent: string,
    private readonly chunksMax = describedChunksMax,
  ) {}

  /** The cached description; undefined if it has to be read. */
  known(id: string): Description | undefined {
    const file = this.#known.get(id);
    if (file === undefined) return undefined;
    this.#known.delete(id);
    this.#known.set(id, file);
    return file;
  }

  /** Reads the description. Concurrent calls for one file share the reading. Throws `DamageError` for a file that has changed or is gone. */
  read(file: AttachedFile, work: ForeignWork): Promise<Description> {
    const known = this.#underWay.get(file.id);
    if (known !== undefined) return known;
    const reading = this.#describe(file, work).then((described) => {
      this.#keep(file.id, described);
      return described;
    });
    const ended = reading.finally(() => this.#underWay.delete(file.id));
    this.#underWay.set(file.id, ended);
    return ended;
  }

  /** Drops a description from the cache. */
  forget(id: string): void {
    const file = this.#known.get(id);
    if (file === undefined) return;
    this.#known.delete(id);
    this.#chunks -= chunksOf(file);
  }

  async #describe(attached: AttachedFile, work: ForeignWork): Promise<Description> {
    const file = await readSame(attached, work);
    return { file, facts: await this.#factsOf(attached) };
  }

  async #factsOf({ index, rowGroupRows }: AttachedFile): Promise<IndexFacts | null> {
    if (index === undefined) return null;
    const spans = spansOfFile(rowGroupRows).length;
    try {
      return await readFacts(this.directory, this.agent, index, spans, rowGroupRows.length);
    } catch (error) {
      if (!isLogstrataError(error) || error.code !== 'damaged') throw error;
      return null;
    }
  }

  #keep(id: string, described: Description): void {
    this.forget(id);
    this.#known.set(id, described);
    this.#chunks += chunksOf(described);
    for (const oldest of this.#known.keys()) {
      if (this.#chunks <= this.chunksMax || oldest === id) break;
      this.forget(oldest);
    }
  }
}

async function readSame(attached: AttachedFile, work: ForeignWork): Promise<ForeignFile> {
  const { path, format } = attached;
  await assertSameFile(path, format, attached);
  const file = await work.describe(attached, format);
  if (isSameFooter(file.footerHash, attached.footerHash)) return file;
  throw new DamageError(
    `${path} is not the file that was attached: its footer differs. The next search of the archive says what became of it ` +
      '(logstrata index, or a server within ten seconds)',
    { path },
  );
}

function chunksOf({ file: { columns, rowGroups } }: Description): number {
  return columns.reduce((sum, { node }) => sum + (node?.leaves ?? 1), 0) * rowGroups.length;
}
