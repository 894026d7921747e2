const unitsBytes: ReadonlyMap<string, number> = new Map([
  ['', 1],
  ['b', 1],
  ['kb', 1024],
  ['mb', 1024 ** 2],
  ['gb', 1024 ** 3],
]);

const sizePattern = /^(\d+(?:\.\d+)?)\s*(b|kb|mb|gb)?$/i;

/** Describes the input of `parseByteSize` in messages. */
export const byteSizeShape = 'a size such as 512kb, 10mb or 1gb (a bare number is bytes)';

/** Parses a size in bytes, kb, mb or gb (powers of 1024), in any case; undefined for another text. */
export function parseByteSize(text: string): number | undefined {
  const match = sizePattern.exec(text.trim());
  if (match === null) return undefined;
  const sizeBytes = Math.floor(Number(match[1]) * unitsBytes.get((match[2] ?? '').toLowerCase())!);
  return Number.isSafeInteger(sizeBytes) ? sizeBytes : undefined;
}
