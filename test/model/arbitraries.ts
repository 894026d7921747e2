import fc from 'fast-check';
import { RE2JS } from 're2js';
import type { Position } from '../../engine/core/cursor.js';
import type {
  AnswerForm,
  AnywherePredicate,
  CompareOp,
  FieldPredicate,
  Predicate,
  Query,
  StringOp,
} from '../../engine/scan/query.js';
import { lineFormats, makeSchema, type Field, type Schema } from '../../engine/core/schema.js';
import type { Dataset, ModelRecord, Value } from './dataset.js';
import { anyPattern } from './any-pattern.js';
import { anyCharacter } from './any-text.js';

/** Characters with unusual case folding, ordinary ones, and those that JSON and RegExp escape. */
export const strangeCharacters = [
  ...'aAkKsSzZ09 -_/.',
  ...'ſ\u212a\u212bÅåİıIiÇßẞΣσςǅǆǄµμÿŸΘθϴ',
  ...'\u{10400}\u{10428}ꭰᎠᏸᏰȺⱥ\u0345\u03b9\u1fbeﬅﬆ\u1fd3\u0390',
  ...'中文😀\u200d\ufeff\u0000\u0007\b\f\n\r\t"\\\u007f\u2028%*+?^$()[]{}|',
];

const character = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...strangeCharacters) },
  { weight: 1, arbitrary: anyCharacter },
);

export function strangeText(lengthMax: number): fc.Arbitrary<string> {
  return fc.array(character, { maxLength: lengthMax }).map((characters) => characters.join(''));
}

const fewStrings = fc.constantFrom('GET', 'get', 'POST', '', 'ſtrasse', 'K8S', '\u212a8s', 'größe', 'GRÖẞE');
const int64 = fc.oneof(
  fc.bigInt(-3n, 3n),
  fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n),
  fc.constantFrom(
    9007199254740991n,
    9007199254740992n,
    9007199254740993n,
    -(2n ** 63n),
    2n ** 63n - 1n,
    -9007199254740993n,
  ),
);
const time = fc.bigInt(1_735_689_600_000n, 1_735_689_600_050n);
const float = fc.oneof(
  fc.constantFrom(-0, 0, 0.1, 0.001, 1.5, -2, 1e21, 1e-7, 5e-324, 123456.789, 1e15, 1.7976931348623157e308),
  // The longest text of a double.
  fc.constant(-0.0000028663373879509285),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);

function valueOf(field: Field): fc.Arbitrary<Value> {
  switch (field.type) {
    case 'int':
      return int64;
    case 'time':
      return time;
    case 'float':
      return float;
    case 'string':
      return fc.oneof(fewStrings, strangeText(8));
    case 'bool':
      return fc.constantFrom(0n, 1n);
  }
}

export const strangeSchema: Schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'status', type: 'int' },
  { name: 'ratio', type: 'float' },
  { name: 'method', type: 'string' },
  { name: 'message', type: 'string' },
  { name: 'cached', type: 'bool' },
]);

/** Datasets of up to `recordsMax` records; positions with gaps, in few partitions. */
export function datasets(recordsMax: number): fc.Arbitrary<Dataset> {
  const gap = fc.oneof({ weight: 8, arbitrary: fc.constant(1) }, fc.constantFrom(2, 5, 2 ** 33));
  const step = fc.record({ hour: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, fc.nat(3)), gap });
  const values = fc.tuple(
    ...strangeSchema.fields.map((field) =>
      fc.oneof({ weight: 9, arbitrary: valueOf(field) }, { weight: 1, arbitrary: fc.constant(null) }),
    ),
  );
  return fc.array(fc.record({ step, values }), { maxLength: recordsMax }).map((rows) => {
    const records: ModelRecord[] = [];
    let position: Position = { partition: 482136, ordinal: 0 };
    for (const row of rows) {
      position =
        row.step.hour === 0
          ? { partition: position.partition, ordinal: position.ordinal + row.step.gap }
          : { partition: position.partition + row.step.hour, ordinal: row.step.gap };
      records.push({ position, values: row.values });
    }
    return { schema: strangeSchema, records };
  });
}

const compareOps: fc.Arbitrary<CompareOp> = fc.constantFrom('eq', 'ne', 'gt', 'gte', 'lt', 'lte');
const stringOps: fc.Arbitrary<StringOp> = fc.constantFrom(
  'exact',
  'like',
  'prefix',
  'suffix',
  'ne',
  'not_like',
  'not_prefix',
  'not_suffix',
);

const patternOps: fc.Arbitrary<StringOp> = fc.constantFrom('regex', 'regex', 'not_regex');

const boolOps: fc.Arbitrary<CompareOp> = fc.constantFrom('eq', 'ne');

/** Predicates on values of the dataset, on parts of them, and on others; sets of them; text searches; whether there is a value. */
function filters(dataset: Dataset): fc.Arbitrary<FieldPredicate | AnywherePredicate> {
  const compared = compares(dataset);
  // Comparisons of one field with a possibly present value, each turned into one for equality.
  const sets = fc.array(compared, { minLength: 1, maxLength: 12 }).map((drawn): FieldPredicate => {
    const { field } = drawn[0]!;
    const members = drawn
      .filter((each) => each.field === field)
      .map((each) => ({ ...each, op: each.kind === 'string' ? 'exact' : 'eq' }) as FieldPredicate);
    return { kind: 'set', field, members };
  });
  const anywhere = fc.tuple(compared, fc.boolean()).map(([drawn, isAbsent]): AnywherePredicate => ({
    kind: 'anywhere',
    op: drawn.op.endsWith('regex') ? 'regex' : 'like',
    isAbsent,
    value: drawn.kind === 'string' ? drawn.value : '',
  }));
  const exists = fc.record({
    kind: fc.constant('exists' as const),
    field: fc.nat(dataset.schema.fields.length - 1),
    value: fc.boolean(),
  });
  return fc.oneof(
    { weight: 5, arbitrary: compared },
    { weight: 1, arbitrary: sets },
    { weight: 1, arbitrary: anywhere },
    { weight: 1, arbitrary: exists },
  );
}

/** Groups of filters, some of them empty. */
export function groups(dataset: Dataset): fc.Arbitrary<Predicate> {
  const members = fc.array(filters(dataset), { maxLength: 4 });
  return fc.record({ kind: fc.constant('any' as const), members });
}

/** Filters, and groups of them. */
export function predicates(dataset: Dataset): fc.Arbitrary<Predicate> {
  return fc.oneof({ weight: 4, arbitrary: filters(dataset) }, { weight: 2, arbitrary: groups(dataset) });
}

const patternAtoms = fc.constantFrom(
  ...['k', 'K', '\u212a', 's', 'GET', 'ß', 'Å', '[^k]', '[A-Z]', '.', '^', '$', '\\b', '\\d', '\\pL', ' '],
);

/** Patterns that match texts, parts of which are drawn: literal ones with something around, and others. */
function patternOf(part: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const literal = part.map((text) => RE2JS.quote(text));
  const around = fc.constantFrom(
    'PART',
    '(?i)PART',
    '^PART',
    'PART$',
    '.PART',
    'PART.*PART',
    '(?:PART|xyz)+',
  );
  return fc.oneof(
    literal,
    fc.tuple(around, literal).map(([text, each]) => text.replaceAll('PART', () => each)),
    fc.tuple(literal, literal).map(([a, b]) => `(?:${a}|${b})`),
    anyPattern(patternAtoms),
  );
}

/** A comparison with one value. */
type Compare = Exclude<FieldPredicate, { kind: 'set' | 'exists' }>;

function compares(dataset: Dataset): fc.Arbitrary<Compare> {
  return fc.nat(dataset.schema.fields.length - 1).chain((field): fc.Arbitrary<Compare> => {
    const present = dataset.records.map((record) => record.values[field]!).filter((value) => value !== null);
    const { type } = dataset.schema.fields[field]!;
    if (type === 'string') {
      const stored = present.length === 0 ? fewStrings : fc.constantFrom(...present.map(String));
      const part = fc.tuple(stored, fc.nat(4), fc.nat(4)).map(([text, from, length]) => {
        return Array.from(text)
          .slice(from, from + length)
          .join('');
      });
      const value = fc.oneof(
        stored,
        part,
        part.map((text) => text.toUpperCase()),
        fewStrings,
        strangeText(3),
      );
      const kind = fc.constant('string' as const);
      return fc.oneof(
        {
          weight: 3,
          arbitrary: fc.record({ kind, field: fc.constant(field), op: stringOps, value }),
        },
        {
          weight: 1,
          arbitrary: fc.record({ kind, field: fc.constant(field), op: patternOps, value: patternOf(part) }),
        },
      );
    }
    if (type === 'float') {
      const value = present.length === 0 ? float : fc.oneof(fc.constantFrom(...present.map(Number)), float);
      return fc.record({
        kind: fc.constant('float' as const),
        field: fc.constant(field),
        op: compareOps,
        value,
      });
    }
    const other = valueOf(dataset.schema.fields[field]!) as fc.Arbitrary<bigint>;
    const value = present.length === 0 ? other : fc.oneof(fc.constantFrom(...(present as bigint[])), other);
    return fc.record({
      kind: fc.constant('int' as const),
      field: fc.constant(field),
      op: type === 'bool' ? boolOps : compareOps,
      value,
    });
  });
}

/** Cursors of records, and of places between and beyond them. */
export function positions(dataset: Dataset): fc.Arbitrary<Position> {
  const anywhere = fc.constantFrom(
    { partition: 0, ordinal: 0 },
    { partition: 482136, ordinal: 3 },
    { partition: 482137, ordinal: 0 },
    { partition: 2 ** 24 - 1, ordinal: 2 ** 40 - 1 },
  );
  if (dataset.records.length === 0) return anywhere;
  const stored = fc.constantFrom(...dataset.records.map((record) => record.position));
  const beside = fc.tuple(stored, fc.constantFrom(-1, 1)).map(([position, by]) => ({
    partition: position.partition,
    ordinal: Math.max(0, position.ordinal + by),
  }));
  return fc.oneof({ weight: 3, arbitrary: stored }, beside, anywhere);
}

export function queries(dataset: Dataset): fc.Arbitrary<Query> {
  const maybe = fc.option(positions(dataset), { nil: undefined });
  return fc.record({
    limit: fc.oneof(fc.nat(5), fc.nat(100), fc.constant(1_000_000)),
    after: maybe,
    before: maybe,
    predicates: fc.array(predicates(dataset), { maxLength: 3 }),
  });
}

/** Forms of answers: any fields in any order, or all. */
export function forms(dataset: Dataset): fc.Arbitrary<AnswerForm> {
  const all = dataset.schema.fields.map((_, field) => field);
  return fc.record({
    format: fc.constantFrom(...lineFormats),
    fields: fc.option(fc.shuffledSubarray(all), { nil: null }),
  });
}
