import { isDeepStrictEqual } from 'node:util';
import {
  type AttachedFile,
  groupBy,
  isSameFooter,
  LogstrataError,
  type MovedFile,
  type RemadeFile,
} from '../../engine/index.js';
import type { ArchiveInput } from '../definition/definition.js';
import { isWithin } from '../sources/paths.js';
import { readingOf, type Footer, type FooterRead } from './file-footers.js';
import type { FoundFile, FoundFiles, PathProblem } from './found-files.js';

/** What is known of an attached file. `constants` are the keys and values of its folders when it was attached. */
export type KnownFile = Pick<
  AttachedFile,
  'id' | 'path' | 'bytes' | 'mtimeMs' | 'footerHash' | 'etag' | 'constants' | 'renamed' | 'deleted' | 'table'
>;

/** What has changed in an archive since its files were attached. */
export interface Discovery {
  /** New files in the order in which they were found, the newest first. */
  readonly adds: readonly FoundFile[];
  readonly moves: readonly MovedFile[];
  /** Files of a table whose columns are others now. */
  readonly remakes: readonly RemadeFile[];
  /** Attached files to be detached, according to the archive's policy. */
  readonly removes: readonly KnownFile[];
  /** Paths of files that are not complete yet and were written to just now. */
  readonly waits: readonly string[];
  readonly problems: readonly PathProblem[];
}

/** How changes are dealt with. */
export interface Policy extends Pick<ArchiveInput, 'changed' | 'missing'> {
  /** The columns that the agent's fields read; absent where all columns and keys of folders are fields. */
  readonly columns?: ReadonlySet<string> | undefined;
}

/** A file that can't be read or has no end mark, and that was modified within this time, may still be being written. */
const writtenMs = 60_000;

/**
 * The files whose footers `discover` needs: those that have changed, and those that could have been exchanged for one another
 * without a change of size and time.
 */
export function filesToRead(known: readonly KnownFile[], found: readonly FoundFile[]): FoundFile[] {
  const byPath = new Map(known.map((file) => [file.path, file]));
  const stamps = new Set<number>();
  const twins = new Set<number>();
  for (const { etag, ...file } of known) {
    const stamp = stampOf(file);
    if (etag === undefined && stamps.has(stamp)) twins.add(stamp);
    stamps.add(stamp);
  }
  return found.filter((file) => {
    const before = byPath.get(file.path);
    return !isUntouched(file, before) || isReadOtherwise(file, before) || twins.has(stampOf(file));
  });
}

/** One number for the size and time of a file. Where different ones have the same number, more footers are read than needed. */
function stampOf({ bytes, mtimeMs }: Pick<FoundFile, 'bytes' | 'mtimeMs'>): number {
  return bytes * 4093 + mtimeMs;
}

function isUntouched({ bytes, mtimeMs, etag }: FoundFile, known: KnownFile | undefined): boolean {
  return known?.bytes === bytes && known.mtimeMs === mtimeMs && known.etag === etag;
}

/** Whether an attached file may have to be read in another way than when it was attached. */
function isReadOtherwise({ table }: FoundFile, known: KnownFile | undefined): boolean {
  return known?.table?.schema !== table?.schema.id || known?.table?.deletes !== table?.deletes?.id;
}

/**
 * Compares the attached files with those that were found. Files at several paths are several files, whatever they hold. A file
 * that is not at its path any more is recognised by its footer where it is now, unless the keys of its folders, and so its
 * rows, are other ones there. Files without rows are skipped.
 *
 * @param footers the footers of all `filesToRead`
 */
export function discover(
  known: readonly KnownFile[],
  found: FoundFiles,
  footers: ReadonlyMap<string, FooterRead>,
  policy: Policy,
  nowMs: number,
): Discovery {
  return new Comparison(known, found, footers, policy, nowMs).run();
}

class Comparison {
  private readonly adds: FoundFile[] = [];
  private readonly moves: MovedFile[] = [];
  private readonly remakes: RemadeFile[] = [];
  private readonly removes: KnownFile[] = [];
  private readonly waits: string[] = [];
  private readonly problems: PathProblem[] = [];
  private readonly knownByPath: ReadonlyMap<string, KnownFile>;
  /** Ids of the attached files whose place is known. */
  private readonly placed = new Set<string>();
  /** Attached files that are not at their path any more, by footer and keys of folders. */
  private lost = new Map<string, KnownFile[]>();

  constructor(
    private readonly known: readonly KnownFile[],
    private readonly found: FoundFiles,
    private readonly footers: ReadonlyMap<string, FooterRead>,
    private readonly policy: Policy,
    private readonly nowMs: number,
  ) {
    this.knownByPath = new Map(known.map((file) => [file.path, file]));
  }

  run(): Discovery {
    // A path may belong to another file by now, so first handle files that stayed, then those that moved; the rest is new.
    const elsewhere = this.found.files.filter((file) => !this.isUnmoved(file));
    this.noteLost();
    const others = elsewhere.filter((file) => !this.hasMoved(file));
    for (const file of others) this.take(file);
    this.checkMissingFiles();
    const { adds, moves, remakes, removes, waits, problems } = this;
    return { adds, moves, remakes, removes, waits, problems };
  }

  private isUnmoved(file: FoundFile): boolean {
    const known = this.knownByPath.get(file.path);
    if (known === undefined) return false;
    const isSame = isUntouched(file, known);
    if (!isSame || this.footers.has(file.path)) {
      const hash = this.hashOf(file);
      if (hash === undefined || !isSameFooter(hash, known.footerHash)) return false;
    }
    if (!isSame || isReadOtherwise(file, known)) this.move(known, file);
    else this.placed.add(known.id);
    return true;
  }

  private noteLost(): void {
    // In reverse order, because `hasMoved` takes them from the end.
    const lost = this.known.toReversed().filter(({ id }) => !this.placed.has(id));
    this.lost = groupBy(lost, (file) => this.nameOf(file.footerHash, file.constants, file));
  }

  private hasMoved(file: FoundFile): boolean {
    const hash = this.hashOf(file);
    if (hash === undefined) return false;
    // An earlier version may have attached it, by the hash of its footer alone.
    const known = this.takeLost(hash, file) ?? this.takeLost(hash.split('+')[0]!, file);
    if (known === undefined) return false;
    this.move(known, file);
    return true;
  }

  private takeLost(footerHash: string, file: FoundFile): KnownFile | undefined {
    return this.lost.get(this.nameOf(footerHash, this.readingOf(file).constants, file))?.pop();
  }

  private readingOf(file: FoundFile): ReturnType<typeof readingOf> {
    return readingOf(file, this.footers.get(file.path) as Footer);
  }

  /**
   * The name of a file's rows: its footer, and the values that its folders give to fields. A table writes its files under new names, so there
   * the name counts too.
   */
  private nameOf(
    footerHash: string,
    constants: KnownFile['constants'],
    { path, table }: Pick<FoundFile, 'path'> & { readonly table?: object | undefined },
  ): string {
    const { columns } = this.policy;
    const values = Object.entries(constants).filter(([key]) => columns?.has(key) ?? true);
    const name = table === undefined ? [] : [path.slice(path.lastIndexOf('/'))];
    return JSON.stringify([footerHash, ...name, ...values.toSorted(([a], [b]) => (a < b ? -1 : 1))]);
  }

  /** Handles a file that was not attached before. */
  private take(file: FoundFile): void {
    const { path } = file;
    const footer = this.footers.get(path);
    if (footer === undefined) return;
    if (footer instanceof LogstrataError) {
      this.unreadable(file, footer);
      return;
    }
    if (footer.isOpen === true && this.isWritten(file)) {
      this.waits.push(path);
      return;
    }
    const before = this.knownByPath.get(path);
    const isChanged = before !== undefined && !this.placed.has(before.id);
    if (isChanged && this.policy.changed === 'fail') {
      const message = `${path} is not the file that was attached. Queries that need its rows fail until the attached file is restored, or archive.changed is set to replace`;
      this.problems.push({ path, message });
      return;
    }
    if (isChanged) this.removes.push(before);
    if (footer.rows > 0) this.adds.push(file);
  }

  private hashOf({ path }: FoundFile): string | undefined {
    const footer = this.footers.get(path);
    return footer === undefined || footer instanceof LogstrataError ? undefined : footer.footerHash;
  }

  private move(known: KnownFile, file: FoundFile): void {
    const { id } = known;
    const { path, bytes, mtimeMs, etag } = file;
    this.placed.add(id);
    const own = isReadOtherwise(file, known) ? this.readingOf(file) : known;
    const { constants, renamed, deleted } = own;
    const { schema, deletes } = own.table ?? {};
    const table = schema === undefined ? undefined : { ...known.table, schema, deletes };
    this.moves.push({ id, path, bytes, mtimeMs, etag, table });
    const isReindexed = !isDeepStrictEqual([constants, renamed], [{ ...known.constants }, known.renamed]);
    if (isReindexed || deleted?.at !== known.deleted?.at)
      this.remakes.push({ id, constants, renamed, deleted, table, isReindexed });
  }

  private unreadable(file: FoundFile, error: LogstrataError): void {
    const { path } = file;
    if (this.isWritten(file)) this.waits.push(path);
    else this.problems.push({ path, message: error.message });
  }

  /** Whether a file was written to just now. An object is complete once it exists. */
  private isWritten({ mtimeMs, etag }: FoundFile): boolean {
    return etag === undefined && Math.abs(this.nowMs - mtimeMs) < writtenMs;
  }

  /** Handles attached files that are gone. Where another file has the path, that one has been reported already. */
  private checkMissingFiles(): void {
    const unreadPaths = this.found.problems.map(({ path }) => path);
    const paths = new Set(this.found.files.map(({ path }) => path));
    for (const file of this.known) {
      const { id, path } = file;
      if (this.placed.has(id) || paths.has(path) || unreadPaths.some((folder) => isWithin(path, folder)))
        continue;
      // The log of a table says which files count, whether others are still there or not.
      if (this.found.table !== undefined) {
        this.removes.push(file);
        continue;
      }
      // Where no file is found, the disk may not be mounted, so nothing is retired.
      if (this.policy.missing === 'retire' && paths.size > 0) {
        this.removes.push(file);
        continue;
      }
      const advice =
        this.policy.missing === 'retire'
          ? 'no file of the archive was found, so none is retired'
          : 'queries that need its rows fail until it is back, or archive.missing is set to retire';
      this.problems.push({ path, message: `${path} does not exist any more: ${advice}` });
    }
  }
}
