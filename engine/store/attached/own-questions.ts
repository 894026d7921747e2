import type { ForeignFile } from '../../foreign/foreign-file.js';
import type { ValueHash } from '../../parquet/bloom-filter.js';
import { physicalType } from '../../parquet/format.js';
import type { Asked, FilterQuestion } from '../sealed/filter-question.js';
import type { ColumnSource } from './column-source.js';
import type { OwnQuestion } from './span-tasks.js';

/**
 * The questions of a query that the file's own Bloom filters can answer: those for whole values, in columns whose stored values equal the
 * field's.
 *
 * @param sourceOf returns how a field is read from the file
 */
export function ownQuestions(
  questions: readonly FilterQuestion[],
  { rowGroups }: ForeignFile,
  rowGroup: number,
  sourceOf: (field: number) => ColumnSource,
): OwnQuestion[] {
  return questions.flatMap(({ field, asked }): OwnQuestion[] => {
    const source = sourceOf(field);
    if (source.kind !== 'column' || asked.length === 0) return [];
    const filter = rowGroups[rowGroup]!.chunks[source.columnIndex]!.bloomFilter;
    if (filter === null) return [];
    const hashes = asked.flatMap((one) => hashIn(source, one) ?? []);
    return hashes.length === asked.length ? [{ filter, hashes }] : [];
  });
}

/** The hash of a value in the form in which the column stores it; null if the stored form differs, or if the question is not for a whole value. */
function hashIn({ column, change }: ColumnSource & { kind: 'column' }, asked: Asked): ValueHash | null {
  const { parquet, type, values } = column;
  if (parquet === undefined || change.unit !== null || change.conversion !== 'none') return null;
  if (type === 'int' && values.kind === 'same' && parquet.scale === 0) {
    if (parquet.type === physicalType.int64) return asked.hash;
    return parquet.type === physicalType.int32 ? asked.shortHash : null;
  }
  if (type !== 'string' || (values.kind !== 'same' && values.kind !== 'bytes')) return null;
  const isText = parquet.type === physicalType.byteArray || parquet.type === physicalType.fixedLengthBytes;
  return isText && !hasReplacement(asked.folded) ? asked.hash : null;
}

/** U+FFFD may stand for bytes that are not UTF-8, so the stored bytes may differ from those of the value. */
const replacement = Buffer.from('\ufffd');

function hasReplacement(text: Uint8Array): boolean {
  return Buffer.from(text.buffer, text.byteOffset, text.length).includes(replacement);
}
