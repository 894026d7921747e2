import { LogstrataError } from '../../engine/index.js';
import type { ArchiveInput } from '../definition/definition.js';
import { isWithin } from '../sources/own-files.js';
import type { FooterRead } from './file-footers.js';
import type { FoundFile, FoundFiles, PathProblem } from './found-files.js';

/** An attached file. */
export interface KnownFile {
  readonly id: string;
  readonly path: string;
  readonly bytes: number;
  readonly mtimeMs: number;
  readonly footerHash: string;
  readonly etag?: string | undefined;
}

/** An attached file that has another path now, or another modification time. */
export interface MovedFile {
  readonly id: string;
  readonly path: string;
  readonly bytes: number;
  readonly mtimeMs: number;
  readonly etag?: string | undefined;
}

/** What has changed in an archive since its files were attached. */
export interface Discovery {
  /** New files in the order in which they were found, the newest first. */
  readonly adds: readonly FoundFile[];
  readonly moves: readonly MovedFile[];
  /** Attached files to be detached, according to the archive's policy. */
  readonly removes: readonly KnownFile[];
  /** Paths of files that are not complete yet and were written to just now. */
  readonly waits: readonly string[];
  readonly problems: readonly PathProblem[];
}

/** A file that can't be read or has no end mark, and that was modified within this time, may still be being written. */
const writtenMs = 60_000;

/** The files whose footers `discover` needs. */
export function filesToRead(known: readonly KnownFile[], found: readonly FoundFile[]): FoundFile[] {
  const byPath = new Map(known.map((file) => [file.path, file]));
  return found.filter((file) => !isUntouched(file, byPath.get(file.path)));
}

function isUntouched({ bytes, mtimeMs, etag }: FoundFile, known: KnownFile | undefined): boolean {
  return known?.bytes === bytes && known.mtimeMs === mtimeMs && known.etag === etag;
}

/**
 * Compares the attached files with those that were found. A file is identified by its footer, wherever it is; of two with
 * the same footer, the second is left out. Files without rows are skipped.
 *
 * @param footers the footers of all `filesToRead`
 */
export function discover(
  known: readonly KnownFile[],
  found: FoundFiles,
  footers: ReadonlyMap<string, FooterRead>,
  policy: Pick<ArchiveInput, 'changed' | 'missing'>,
  nowMs: number,
): Discovery {
  return new Comparison(known, found, footers, policy, nowMs).run();
}

class Comparison {
  private readonly adds: FoundFile[] = [];
  private readonly moves: MovedFile[] = [];
  private readonly removes: KnownFile[] = [];
  private readonly waits: string[] = [];
  private readonly problems: PathProblem[] = [];
  private readonly knownByPath: ReadonlyMap<string, KnownFile>;
  /** Path of the file with each footer's rows, once that is known. */
  private readonly placeOfFooter = new Map<string, string>();
  /** Attached files that are not at their path any more, by footer hash. */
  private readonly lost = new Map<string, KnownFile[]>();

  constructor(
    private readonly known: readonly KnownFile[],
    private readonly found: FoundFiles,
    private readonly footers: ReadonlyMap<string, FooterRead>,
    private readonly policy: Pick<ArchiveInput, 'changed' | 'missing'>,
    private readonly nowMs: number,
  ) {
    this.knownByPath = new Map(known.map((file) => [file.path, file]));
  }

  run(): Discovery {
    // A path may belong to another file by now, so first handle files that stayed, then those that moved; the rest is new.
    const elsewhere = this.found.files.filter((file) => !this.isWhereItLay(file));
    this.noteLost();
    const others = elsewhere.filter((file) => !this.hasMoved(file));
    for (const file of others) this.take(file);
    this.lookAfterLost();
    const { adds, moves, removes, waits, problems } = this;
    return { adds, moves, removes, waits, problems };
  }

  private isWhereItLay(file: FoundFile): boolean {
    const known = this.knownByPath.get(file.path);
    if (known === undefined) return false;
    if (!isUntouched(file, known)) {
      if (this.hashOf(file) !== known.footerHash) return false;
      this.move(known, file);
    }
    this.placeOfFooter.set(known.footerHash, file.path);
    return true;
  }

  private noteLost(): void {
    for (const file of this.known) {
      if (this.placeOfFooter.get(file.footerHash) === file.path) continue;
      const others = this.lost.get(file.footerHash);
      if (others === undefined) this.lost.set(file.footerHash, [file]);
      else others.push(file);
    }
  }

  private hasMoved(file: FoundFile): boolean {
    const hash = this.hashOf(file);
    if (hash === undefined || this.placeOfFooter.has(hash)) return false;
    const known = this.lost.get(hash)?.shift();
    if (known === undefined) return false;
    this.placeOfFooter.set(hash, file.path);
    this.move(known, file);
    return true;
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
    const isChanged = before !== undefined && this.lost.get(before.footerHash)?.includes(before) === true;
    if (isChanged && this.policy.changed === 'fail') {
      const message = `${path} is not the file that was attached. Queries that need its rows fail until the attached file is restored, or archive.changed is set to replace`;
      this.problems.push({ path, message });
      return;
    }
    if (isChanged) this.removes.push(before);
    const { footerHash, rows } = footer;
    if (rows === 0) return;
    const other = this.placeOfFooter.get(footerHash);
    this.placeOfFooter.set(footerHash, other ?? path);
    if (other === undefined) this.adds.push(file);
    else this.problems.push(sameFooter(path, other));
  }

  private hashOf({ path }: FoundFile): string | undefined {
    const footer = this.footers.get(path);
    return footer === undefined || footer instanceof LogstrataError ? undefined : footer.footerHash;
  }

  private move({ id }: KnownFile, { path, bytes, mtimeMs, etag }: FoundFile): void {
    this.moves.push({ id, path, bytes, mtimeMs, etag });
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
  private lookAfterLost(): void {
    const unreadPaths = this.found.problems.map(({ path }) => path);
    const paths = new Set(this.found.files.map(({ path }) => path));
    for (const file of [...this.lost.values()].flat()) {
      const { path } = file;
      if (paths.has(path) || unreadPaths.some((folder) => isWithin(path, folder))) continue;
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

/** The problem of a file that has the same footer, and so the same rows, as another one. */
export function sameFooter(path: string, other: string): PathProblem {
  return { path, message: `${path} has the same footer as ${other}, so it has the same rows and is skipped` };
}
