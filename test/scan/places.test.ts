import { describe, expect, it } from 'vitest';
import {
  isRare,
  placeOfRowGroup,
  placeOfText,
  type InlineLimits,
  type InlineWork,
  type RowGroupPlace,
  type TextPlace,
} from '../../engine/scan/filter/places.js';

const own: InlineLimits = {
  searchedBytes: 1000,
  comparedRowGroups: 4,
  comparedBytes: 5000,
  matches: 100,
  rowsForOneLeft: 10,
};
const nothing: InlineWork = {
  searchedBytes: 0,
  rowGroups: 0,
  comparedRowGroups: 0,
  comparedBytes: 0,
  matches: 0,
};
const much: InlineWork = { ...nothing, rowGroups: 8, comparedRowGroups: 4, comparedBytes: 5000 };

describe('which thread filters a row group', () => {
  const known = { hasThreads: true, isInMemory: true, isCheap: true };
  it.each<[string, RowGroupPlace, typeof known, InlineWork]>([
    ['the first one in memory', 'here', known, nothing],
    ['columns to be read', 'ahead', { ...known, isInMemory: false }, nothing],
    ['no threads', 'here', { hasThreads: false, isInMemory: false, isCheap: true }, much],
    ['many texts searched', 'ahead', known, { ...nothing, searchedBytes: 1001 }],
    ['no more texts than its share', 'here', known, { ...nothing, searchedBytes: 1000 }],
    ['many bytes compared', 'together', known, much],
    ['many matches found', 'together', known, { ...much, comparedBytes: 0, matches: 100 }],
    ['few bytes compared', 'here', known, { ...much, comparedBytes: 4999 }],
    ['few row groups compared', 'here', known, { ...much, comparedRowGroups: 3 }],
    ['most ruled out by dictionaries', 'here', known, { ...much, rowGroups: 9 }],
    ['a text to be searched', 'here', { ...known, isCheap: false }, much],
  ])('%s: %s', (_, place, facts, done) => {
    expect(placeOfRowGroup(facts, done, own)).toBe(place);
  });
});

describe('how a text is searched', () => {
  const column = { hasThreads: true, isShared: true, textBytes: 600, rows: 1000, rowsLeft: 1000 };
  const begun: InlineWork = { ...nothing, searchedBytes: 500 };
  it.each<[string, TextPlace, typeof column, InlineWork]>([
    ['the first one, however long', 'here', { ...column, textBytes: 1e6 }, nothing],
    ['beyond its share', 'thread', column, begun],
    ['up to its share', 'here', { ...column, textBytes: 500 }, begun],
    ['no threads', 'here', { ...column, hasThreads: false }, begun],
    ['not in shared memory', 'here', { ...column, isShared: false }, begun],
    ['few rows left', 'each row', { ...column, rowsLeft: 99 }, begun],
    ['enough rows left', 'thread', { ...column, rowsLeft: 100 }, begun],
  ])('%s: %s', (_, place, facts, done) => {
    expect(placeOfText(facts, done, own)).toBe(place);
  });
});

it('a text is rare while at most one column, plus one for every `columnsPerMatch` searched, may contain it', () => {
  const limits = { needles: 4, columnsPerMatch: 8 };
  expect(isRare({ searched: 0, mayMatch: 0 }, limits)).toBe(true);
  expect(isRare({ searched: 7, mayMatch: 2 }, limits)).toBe(false);
  expect(isRare({ searched: 8, mayMatch: 2 }, limits)).toBe(true);
  expect(isRare({ searched: 8, mayMatch: 3 }, limits)).toBe(false);
  expect(isRare({ searched: 8, mayMatch: 3 }, { ...limits, columnsPerMatch: 4 })).toBe(true);
});
