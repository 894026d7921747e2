import { countText } from '../records/count-text.js';

const byteUnits: readonly (readonly [number, string])[] = [
  [1e9, 'GB'],
  [1e6, 'MB'],
  [1e3, 'kB'],
];

function bytesText(bytes: number): string {
  for (const [size, unit] of byteUnits) if (bytes >= size) return `${(bytes / size).toPrecision(3)} ${unit}`;
  return `${bytes} bytes`;
}

/** The cost of a query from the header `Server-Timing`: `12 ms · 65,536 rows scanned · 1.20 MB read`. */
export function queryCost(timing: string): string {
  const entries = new Map(
    timing.split(',').map((entry) => {
      const [name = '', ...facts] = entry.trim().split(';');
      return [name, facts.join(';')] as const;
    }),
  );
  const numberIn = (name: string, mark: string): number | undefined => {
    const text = entries.get(name);
    const at = text?.indexOf(mark) ?? -1;
    return at < 0 ? undefined : Number.parseFloat(text!.slice(at + mark.length));
  };
  const first = numberIn('first', 'dur=');
  const rows = numberIn('rows', 'desc="');
  const read = numberIn('read', 'desc="');
  const parts = [
    first === undefined ? undefined : `${first < 10 ? first.toFixed(1) : Math.round(first)} ms`,
    rows === undefined || Number.isNaN(rows) ? undefined : `${countText(rows)} rows scanned`,
    read === undefined || Number.isNaN(read) ? undefined : `${bytesText(read)} read`,
  ];
  return parts.filter((part) => part !== undefined).join(' · ');
}
