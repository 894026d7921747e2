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

const unitsMs: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
  ['w', 7 * 86_400_000],
  // Without leap days: records that are kept for a year are kept for 365 days.
  ['y', 365 * 86_400_000],
]);

const durationPattern = /^(?:\d+(?:\.\d+)?\s*(?:ms|[smhdwy])\s*)*(?:\d+(?:\.\d+)?)?$/i;
const partPattern = /(\d+(?:\.\d+)?)\s*(ms|[smhdwy])?/gi;

/** Describes the input of `parseDuration` in messages. */
export const durationShape =
  'a duration such as 90s, 15m, 12h, 7d, 1d 14h, 2w or 1y (a bare number is seconds)';

/**
 * Parses a duration to milliseconds. Parts such as `1d 14h`, `2D3H`, `90m`, `250ms` are added up, with units in any case; a
 * number without a unit, alone or at the end, is seconds. Undefined for another text, or a duration too long to represent.
 */
export function parseDuration(text: string): number | undefined {
  const trimmed = text.trim();
  if (trimmed === '' || !durationPattern.test(trimmed)) return undefined;
  let totalMs = 0;
  for (const [, amount, unit] of trimmed.matchAll(partPattern)) {
    totalMs += Number(amount) * unitsMs.get((unit ?? 's').toLowerCase())!;
  }
  const roundedMs = Math.round(totalMs);
  return Number.isSafeInteger(roundedMs) ? roundedMs : undefined;
}

/** A parser as `parse` that takes values from `min` to `max` only. */
export function within(
  parse: (text: string) => number | undefined,
  min: number,
  max = Infinity,
): (text: string) => number | undefined {
  return (text) => {
    const value = parse(text);
    return value !== undefined && value >= min && value <= max ? value : undefined;
  };
}
