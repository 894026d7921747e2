import { readdir } from 'node:fs/promises';
import {
  isObjectPath,
  LogstrataError,
  readTextRows,
  type ObjectStorage,
  valueBytesMax,
} from '../../engine/index.js';
import { describeSystemError } from '../sources/byte-source.js';
import { openerOf, type OpenFile } from '../sources/opened-file.js';

/** Limit on a file of a table's metadata that is read as a whole. */
const wholeBytesMax = 256 * 1024 * 1024;

const pieceBytes = 4 * 1024 * 1024;

const schemePattern = /^([a-z][a-z0-9+.-]*):\/\//i;

/** The folder of a table, on disk or in object storage. Its methods throw `LogstrataError` with the path. */
export class TableFolder {
  private readonly open: OpenFile;

  /** @param root absolute path, without a slash at its end */
  constructor(
    readonly root: string,
    private readonly objects: ObjectStorage | undefined,
  ) {
    this.open = openerOf(objects);
  }

  /** Names of the files in a folder of the table. */
  async names(folder: string): Promise<string[]> {
    const path = `${this.root}/${folder}`;
    if (!isObjectPath(path))
      return readdir(path).catch((error) => Promise.reject(describeSystemError(error, path)));
    const names: string[] = [];
    for await (const page of this.objects!.list(`${path}/`))
      for (const object of page) names.push(object.path.slice(path.length + 1));
    if (names.length > 0) return names.filter((name) => name !== '' && !name.includes('/'));
    throw new LogstrataError('not_found', `${path} does not exist`, { path });
  }

  /** The content of a file, or the part of it at an offset. */
  async read(path: string, from = 0, length?: number): Promise<Uint8Array> {
    const file = await this.open(path);
    try {
      const wanted = length ?? file.size;
      if (wanted > wholeBytesMax) throw tooLong(path, wholeBytesMax);
      return await file.read(from, Math.min(wanted, Math.max(0, file.size - from)));
    } finally {
      await file.bytes.close();
    }
  }

  /** Calls `take` with each line of a file that is not empty. */
  async lines(path: string, take: (line: string) => void): Promise<void> {
    const file = await this.open(path);
    try {
      let rest = Buffer.alloc(0);
      for (let at = 0; at < file.size;) {
        const piece = await file.read(at, pieceBytes);
        if (piece.length === 0) break;
        at += piece.length;
        const bytes = Buffer.concat([rest, piece]);
        const end = at < file.size ? bytes.lastIndexOf(10) : bytes.length;
        rest = bytes.subarray(Math.max(0, end));
        if (rest.length > valueBytesMax) throw tooLong(path, valueBytesMax);
        for (const line of bytes.toString('utf8', 0, Math.max(0, end)).split('\n'))
          if (line.trim() !== '') take(line);
      }
    } finally {
      await file.bytes.close();
    }
  }

  /** Calls `take` with each row of a Parquet file: the values of columns as texts, nested ones as JSON. */
  async rows(
    path: string,
    columns: readonly string[],
    take: (values: readonly (string | null)[]) => void,
  ): Promise<void> {
    const file = await this.open(path);
    await file.bytes.close();
    const { size: bytes, etag } = file;
    const stamp = { path, bytes, mtimeMs: Math.floor(file.mtimeMs), ...(etag === undefined ? {} : { etag }) };
    await readTextRows(stamp, columns, this.objects, take);
  }

  /**
   * The path of a file that the table's metadata names: a path below the folder, or the URI of one. `location` is where the metadata says
   * that the table is; it may have been moved since.
   */
  place(named: string, location: string = this.root): string {
    const isAbsolute = schemePattern.test(named) || /^(?:[a-z]+:)?\//i.test(named);
    const known = isAbsolute
      ? [location, this.root].find((each) => isBelow(plain(named), plain(each)))
      : undefined;
    const below = known === undefined ? named : plain(named).slice(plain(known).length + 1);
    const isInside = (known !== undefined || !isAbsolute) && !below.split('/').includes('..');
    if (isInside) return `${this.root}/${below}`;
    const { root } = this;
    const message = `the table ${root} has the file ${named}, which is not in its folder: only tables that contain their files are read`;
    throw new LogstrataError('unsupported', message, { path: root });
  }
}

/** A path or URI in one form: without `file:`, and with `s3:` for the other names of the scheme. */
function plain(path: string): string {
  const text = path.replace(/^s3[an]:\/\//i, 's3://').replace(/^file:\/*/i, '/');
  return withoutSlash(text);
}

/** A path without slashes at its end. */
export function withoutSlash(path: string): string {
  let end = path.length;
  while (end > 1 && path[end - 1] === '/') end--;
  return path.slice(0, end);
}

function isBelow(path: string, folder: string): boolean {
  return path.startsWith(`${folder}/`);
}

function tooLong(path: string, bytes: number): LogstrataError {
  return new LogstrataError('limit', `${path}, or one of its lines, has more than ${bytes} bytes`, { path });
}
