import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import type { BytesColumn } from '../../engine/columns/column.js';
import { filteredEntriesMin, searchesBeforeFilter } from '../../engine/core/limits.js';
import { mayHaveExact } from '../../engine/scan/narrowing.js';
import { executeScan } from '../../engine/scan/answer.js';
import { BufferPool } from '../../engine/store/reading/buffer-pool.js';
import { openRealDirectory } from '../../engine/store/disk/real-directory.js';
import { stringsOf } from '../kernels/strings.js';
import { answerOf } from '../model/answer.js';
import type { Dataset } from '../model/dataset.js';
import { numbered, schema } from './numbered.js';
import { storeSnapshot } from './stored-snapshot.js';
import { anyText } from '../model/any-text.js';

const folder = mkdtempSync(join(tmpdir(), 'logstrata-entries-'));
afterAll(() => rmSync(folder, { recursive: true }));

function dictionaryOf(texts: readonly string[]): BytesColumn {
  const { offsets, bytes } = stringsOf(texts.map((text) => Buffer.from(text)));
  return { kind: 'bytes', length: texts.length, offsets, bytes, validity: null };
}

function asked(entries: BytesColumn, text: string): boolean {
  return mayHaveExact(entries, Buffer.from(text));
}

describe('the filter of a dictionary', () => {
  it('is built once the dictionary has been searched often, and then rules out most absent entries', () => {
    const entries = dictionaryOf(
      Array.from({ length: filteredEntriesMin }, (_, i) => `10.0.${i >> 8}.${i & 255}`),
    );
    for (let i = 0; i < searchesBeforeFilter; i++) expect(asked(entries, 'elsewhere')).toBe(true);
    const absent = Array.from({ length: 1000 }, (_, i) => `10.1.${i}.7`);
    expect(absent.filter((text) => asked(entries, text)).length).toBeLessThan(100);
    expect(asked(entries, '10.0.3.255')).toBe(true);
  });

  it('is not built for few entries', () => {
    const entries = dictionaryOf(['GET', 'POST']);
    for (let i = 0; i < 2 * searchesBeforeFilter; i++) expect(asked(entries, 'PUT')).toBe(true);
  });

  it('passes every entry, of any text', () => {
    const texts = fc.uniqueArray(anyText({ maxLength: 40 }), {
      minLength: filteredEntriesMin,
      maxLength: filteredEntriesMin + 50,
      size: 'max',
    });
    fc.assert(
      fc.property(texts, (some) => {
        const entries = dictionaryOf(some);
        for (let i = 0; i < searchesBeforeFilter; i++) asked(entries, '');
        expect(some.every((text) => asked(entries, text))).toBe(true);
      }),
      { numRuns: caseCount(20) },
    );
  });

  it('changes neither answers nor the statistics', async () => {
    const { records } = numbered(9000);
    const dataset: Dataset = {
      schema,
      records: records.map(({ position, values }, i) => ({
        position,
        values: [values[0]!, `host-${(i % 1500) + 1500 * Math.floor(i / 3000)}`, values[2]!],
      })),
    };
    const layout = { segments: 1, stretch: 9000, rowGroupRows: 3000, hotRecords: 0, codec: 'lz4' } as const;
    const pool = new BufferPool(1 << 26);
    const snapshot = await storeSnapshot(await openRealDirectory(folder), 'set', dataset, layout, pool);
    for (const value of ['host-2000', 'host-20x', 'host-4499', 'HOST-1']) {
      const query = { limit: 10, predicates: [{ kind: 'string', field: 1, op: 'exact', value } as const] };
      const counted = new Set<string>();
      for (let i = 0; i < searchesBeforeFilter + 3; i++) {
        const { lines, stats } = executeScan(snapshot, query);
        let text = '';
        for await (const piece of lines) text += Buffer.from(piece).toString();
        expect(text).toBe(answerOf(dataset, query));
        const {
          rowGroupsPrunedByDictionary,
          rowGroupsPrunedByZone,
          rowGroupsPrunedByValue,
          rowGroupsScanned,
        } = stats;
        // Value filters are asked before zone maps until these are in memory.
        const unread = rowGroupsPrunedByZone + rowGroupsPrunedByValue;
        counted.add(`${rowGroupsPrunedByDictionary} ${unread} ${rowGroupsScanned}`);
      }
      expect(counted.size).toBe(1);
    }
    pool.close();
  });
});
