import { statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { load } from 'js-yaml';
import { type Checkpoint, LogstrataError, readBounded } from '../../engine/index.js';
import { checkpointAt, beginning, positionBehind } from '../collect/logs/source-position.js';
import { LogNames } from '../collect/logs/log-names.js';
import { readAt, realLogFiles } from '../collect/logs/log-files.js';
import type { FileInput } from '../definition/definition.js';
import { tailBytesMax } from '../sources/content-reader.js';
import { headBytesMax } from '../sources/source-identity.js';
import { describeSystemError } from '../sources/source-error.js';

/** How far the public service has read each log: path of the log to the offset after the last line read. */
export type FugoOffsets = ReadonlyMap<string, number>;

/** One line per log with a path and a number: room for a hundred thousand logs. */
const offsetsBytesMax = 16 * 1024 * 1024;

/** Path of the offsets file that the service keeps next to its database by default; undefined where it does not exist. */
export function offsetsBeside(database: string): string | undefined {
  const path = join(dirname(database), 'offsets.yaml');
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true ? path : undefined;
}

/** Reads an offsets file. Throws `SourceError` where it can't be read, and `invalid` for another kind of file. */
export function readOffsets(path: string): FugoOffsets {
  let text: string;
  try {
    const bytes = readBounded(path, offsetsBytesMax);
    if (bytes.length > offsetsBytesMax) throw noOffsets(path, `it has more than ${offsetsBytesMax} bytes`);
    text = bytes.toString('utf8');
  } catch (error) {
    if (error instanceof LogstrataError) throw error;
    throw describeSystemError(error, path);
  }
  let content: unknown;
  try {
    content = text.trim() === '' ? {} : load(text);
  } catch (error) {
    throw noOffsets(path, error instanceof Error ? error.message.split('\n', 1)[0]! : String(error));
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content))
    throw noOffsets(path, 'it is not a list of paths');
  const offsets = new Map<string, number>();
  for (const [log, offset] of Object.entries(content)) {
    if (!Number.isSafeInteger(offset) || (offset as number) < 0)
      throw noOffsets(path, `${JSON.stringify(offset)} is not a valid offset, for ${log}`);
    offsets.set(log, offset as number);
  }
  return offsets;
}

function noOffsets(path: string, why: string): LogstrataError {
  return new LogstrataError('invalid', `${path} is not an offsets file of the Fugo service: ${why}`, {
    path,
  });
}

/**
 * Checkpoints for an agent's logs at the offsets up to which the service has read them. A log that is gone or shorter than
 * its offset gets none: it is another log or was truncated, and the service would read it from the beginning too.
 */
export async function checkpointsOf(offsets: FugoOffsets, file: FileInput): Promise<Checkpoint[]> {
  const names = new LogNames(file.namePattern);
  const checkpoints: Checkpoint[] = [];
  for (const [path, offset] of offsets) {
    if (offset === 0 || dirname(path) !== file.directory) continue;
    if (names.read(basename(path))?.direct !== true) continue;
    const checkpoint = await checkpointOf(path, offset);
    if (checkpoint !== undefined) checkpoints.push(checkpoint);
  }
  return checkpoints;
}

async function checkpointOf(path: string, offset: number): Promise<Checkpoint | undefined> {
  try {
    const handle = await realLogFiles.open(path);
    try {
      const status = await handle.status();
      if (status.sizeBytes < offset) return undefined;
      const head = await readAt(handle, 0, Math.min(headBytesMax, offset));
      const tailBytes = Math.min(tailBytesMax, offset);
      const tail = await readAt(handle, offset - tailBytes, tailBytes);
      return checkpointAt(positionBehind(beginning, head, offset, tail), { path, status, target: null });
    } finally {
      await handle.close();
    }
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return undefined;
    throw describeSystemError(error, path);
  }
}
