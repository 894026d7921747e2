import { hasColumns } from '../definition/definition.js';
import { openOnDisk } from '../sources/opened-file.js';
import type { FoundFormat, ReadSettings } from './load-file.js';

/** First bytes of columnar files: Parquet, Arrow files, and Arrow streams. */
const beginnings: readonly (readonly [format: FoundFormat, bytes: Uint8Array])[] = [
  ['parquet', Buffer.from('PAR1')],
  ['arrow', Buffer.from('ARROW1')],
  ['arrow', Uint8Array.of(0xff, 0xff, 0xff, 0xff)],
];

/**
 * The format of a file. Where the archive does not state it, its first bytes tell. A file with an unknown beginning has the
 * archive's columnar format, or is lines of text where the agent also reads lines. Throws `SourceError`.
 */
export async function formatOf(
  { definition, formats, openFile = openOnDisk }: Pick<ReadSettings, 'definition' | 'formats' | 'openFile'>,
  path: string,
): Promise<FoundFormat> {
  const { archive, file } = definition;
  const known = formats?.get(path);
  if (known !== undefined) return known;
  if (archive === undefined || archive.mode !== 'import' || !hasColumns(archive)) return 'lines';
  const opened = await openFile(path);
  try {
    const head = await opened.read(0, 8);
    const found = beginnings.find(([, bytes]) => bytes.every((byte, i) => head[i] === byte));
    return found?.[0] ?? (file === undefined ? archive.globs[0]!.format : 'lines');
  } finally {
    await opened.bytes.close();
  }
}
