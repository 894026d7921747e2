import { setRange } from '../engine/kernels/bitmap.js';
import { affixEnd, affixStart, kernelNeedle } from '../engine/kernels/needle.js';
import { patternSearch } from '../engine/patterns/pattern-search.js';
import { searchPattern } from '../engine/patterns/search-pattern.js';
import { countRange, listRange } from '../test/kernels/plain/bitmap.js';
import { selectFloat64, selectInt64 } from '../test/kernels/plain/compare.js';
import { selectCodes } from '../test/kernels/plain/dictionary-select.js';
import {
  selectContaining,
  selectEqual,
  selectPrefix,
  selectSuffix,
} from '../test/kernels/plain/substring.js';
import type { KernelCase } from './kernel-case.js';
import type { Strings, WebColumns } from './kernel-columns.js';
import type { KernelMemory } from './kernel-memory.js';

function numberCases(columns: WebColumns, memory: KernelMemory): KernelCase[] {
  const { rows, bytesSent, requestSeconds } = columns;
  const { kernels } = memory;
  const bits = new Uint8Array((rows + 7) >> 3);
  const out = memory.room(bits.length);
  const halves = new Int32Array(bytesSent.buffer);
  const integersAt = memory.place(bytesSent);
  const doublesAt = memory.place(requestSeconds);
  return [
    {
      name: 'int64 in a range',
      bytes: rows * 8,
      plain: () => {
        selectInt64(halves, 0, rows, 1000, 9000, 0, bits);
        return bits;
      },
      kernel: () => {
        kernels.selectInt64(integersAt, 0, rows, 1000n, 9000n, 0, out);
        return memory.view(out, bits.length);
      },
    },
    {
      name: 'float64 in a range',
      bytes: rows * 8,
      plain: () => {
        selectFloat64(requestSeconds, 0, rows, 0.05, 1, 0, bits);
        return bits;
      },
      kernel: () => {
        kernels.selectFloat64(doublesAt, 0, rows, 0.05, 1, 0, out);
        return memory.view(out, bits.length);
      },
    },
  ];
}

function codeCase(codes: Uint8Array | Uint16Array, memory: KernelMemory): KernelCase {
  const rows = codes.length;
  const width = codes.BYTES_PER_ELEMENT;
  const bits = new Uint8Array((rows + 7) >> 3);
  const wanted = Uint8Array.from({ length: width === 1 ? 256 : 65536 }, (_, entry) =>
    entry % 7 === 3 ? 1 : 0,
  );
  const out = memory.room(bits.length);
  const codesAt = memory.place(codes);
  const wantedAt = memory.place(wanted);
  const { kernels } = memory;
  return {
    name: `codes of ${width * 8} bits through a set`,
    bytes: rows * width,
    plain: () => {
      selectCodes(codes, wanted, 0, rows, bits);
      return bits;
    },
    kernel: () => {
      if (width === 1) kernels.selectCodes8(codesAt, wantedAt, 0, rows, out);
      else kernels.selectCodes16(codesAt, wantedAt, 0, rows, out);
      return memory.view(out, bits.length);
    },
  };
}

function stringCases(
  name: string,
  strings: Strings,
  texts: readonly string[],
  memory: KernelMemory,
): KernelCase[] {
  const { rows, bytes, offsets } = strings;
  const { kernels } = memory;
  const bits = new Uint8Array((rows + 7) >> 3);
  const out = memory.room(bits.length);
  const bytesAt = memory.place(bytes);
  const offsetsAt = memory.place(offsets);
  return texts.flatMap((text): KernelCase[] => {
    const needle = Buffer.from(text);
    const { planes, length, first, second } = kernelNeedle(needle, true);
    const needleAt = memory.place(planes);
    const exactAt = memory.place(kernelNeedle(needle, false).planes);
    const affix = (kind: number): Uint8Array => {
      kernels.selectAffix(bytesAt, offsetsAt, 0, rows, needleAt, length, kind, out);
      return memory.view(out, bits.length);
    };
    return [
      {
        name: `like "${text}", ${name}`,
        bytes: bytes.length,
        plain: () => {
          selectContaining(offsets, bytes, needle, 0, rows, bits);
          return bits;
        },
        kernel: () => {
          kernels.selectContaining(bytesAt, offsetsAt, 0, rows, needleAt, length, first, second, out);
          return memory.view(out, bits.length);
        },
      },
      {
        name: `prefix "${text}", ${name}`,
        bytes: rows * 20,
        plain: () => {
          selectPrefix(offsets, bytes, needle, 0, rows, bits);
          return bits;
        },
        kernel: () => affix(affixStart),
      },
      {
        name: `suffix "${text}", ${name}`,
        bytes: rows * 20,
        plain: () => {
          selectSuffix(offsets, bytes, needle, 0, rows, bits);
          return bits;
        },
        kernel: () => affix(affixEnd),
      },
      {
        name: `exact "${text}", ${name}`,
        bytes: rows * 4,
        plain: () => {
          selectEqual(offsets, bytes, needle, 0, rows, bits);
          return bits;
        },
        kernel: () => {
          kernels.selectEqual(bytesAt, offsetsAt, 0, rows, exactAt, length, out);
          return memory.view(out, bits.length);
        },
      },
    ];
  });
}

/** Patterns that are hostile to one way or another of searching, none of which the messages match. */
const hostile = [
  '(a*)*#',
  '([0-9]+[0-9]+)+#',
  '.{0,500}#',
  '[0-9].{500}#',
  '[0-9a-f].{12}[0-9a-f]#',
  '[^\\pL\\pN]{300}',
  '(?:a?b?){20}#',
  '[0-9].{60}a?b?c?d?e?f?g?h?i?j?k?l?m?n?o?p?q?r?s?t?u?v?w?x?y?z?#',
  '[0-9].{1,200}#',
  '[0-9].{900}#',
  '(?:[0-9].{20}|[a-f].{30}|[4-9].{40}){1,4}#',
];

/** Hostile patterns as kernels, each beside a plain pattern as its twin: a ratio of 0.05 means twenty times the cost per byte. */
function patternCases({ rows, bytes, offsets }: Strings): KernelCase[] {
  const find = (pattern: string) => (): Uint8Array => {
    const bits = new Uint8Array((rows + 7) >> 3);
    setRange(bits, 0, rows);
    const steps = patternSearch(searchPattern(pattern)).narrow({ offsets, bytes }, bits, 0, rows);
    while (steps.next().done !== true);
    return bits;
  };
  return hostile.map((pattern) => ({
    name: `pattern ${pattern}, and [0-9]+#`,
    bytes: bytes.length,
    plain: find('[0-9]+#'),
    kernel: find(pattern),
  }));
}

function bitmapCases(rows: number, memory: KernelMemory): KernelCase[] {
  const bits = Uint8Array.from({ length: rows >> 3 }, (_, i) => (Math.imul(i, 2654435761) >>> 24) & 0x91);
  const at = memory.place(bits);
  const listed = new Uint32Array(rows);
  const rowsAt = memory.room(rows * 4);
  const { kernels } = memory;
  const asBytes = (count: number): Uint8Array => new Uint8Array(Uint32Array.of(count).buffer);
  return [
    {
      name: 'count a selection',
      bytes: bits.length,
      plain: () => asBytes(countRange(bits, 0, rows & ~7)),
      kernel: () => asBytes(kernels.countRange(at, 0, rows & ~7)),
    },
    {
      name: 'list a selection',
      bytes: bits.length,
      plain: () => new Uint8Array(listed.buffer, 0, 4 * listRange(bits, 0, rows & ~7, listed, 0)),
      kernel: () => memory.view(rowsAt, 4 * kernels.listRange32(at, 0, rows & ~7, rows, rowsAt)),
    },
  ];
}

/** Cases for the steps of a scan over columns in the kernels' memory; nothing is copied. */
export function scanKernelCases(columns: WebColumns, memory: KernelMemory): KernelCase[] {
  const codes = Uint16Array.from({ length: columns.rows }, (_, row) => Math.imul(row, 2654435761) >>> 16);
  return [
    ...numberCases(columns, memory),
    codeCase(Uint8Array.from(codes), memory),
    codeCase(codes, memory),
    ...stringCases('message', columns.message, ['get /', 'no such text', 'f00dfeed0123'], memory),
    ...stringCases('user_agent', columns.userAgent, ['firefox'], memory),
    ...patternCases(columns.message),
    ...bitmapCases(columns.rows, memory),
  ];
}
