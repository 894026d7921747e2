import type { ByteSet, LineStep } from './delimited-lines.js';
import type { TableHeader } from './table-rows.js';

/** Limit on columns: the steps of more take longer to prepare than they save. */
const columnsMax = 500;

const quote = 0x22;
const allBytes: ByteSet = new Uint8Array(256).fill(1);
const only = (byte: number): ByteSet => allBytes.map((_, i) => (i === byte ? 1 : 0));

/**
 * Steps that split rows under a header, except those with `""`, with a mark inside a value, or with another number of values
 * than columns. Null for a header whose rows they would mostly fail for.
 *
 * @param fields for each column, its field; -1 for none
 */
export function rowSteps(header: TableHeader | null, fields: Int32Array): LineStep[] | null {
  if (header === null || header.problem !== null) return null;
  const { names, form } = header;
  const { separators, quotes } = form;
  const unset = Buffer.from(form.unset);
  // Blanks separate words, of which none is empty; a line of blanks is no row.
  const isWords = quotes === 'strings';
  if (names.length > columnsMax || unset.length > 1) return null;
  const steps: LineStep[] = [];
  const inValue = separators.map((flag, byte) =>
    flag === 1 || (quotes !== 'none' && byte === quote) ? 0 : 1,
  );
  names.forEach((_name, i) => {
    const isLast = i === names.length - 1;
    const exits: number[] = [];
    /** Steps that are taken only where the next byte is one of the set. */
    const where = (
      set: ByteSet,
      inner: readonly LineStep[],
      andThen: 'exit' | 'go on' | (() => void),
    ): void => {
      const at = steps.push({ kind: 'branch', set, otherwise: 0 }) - 1;
      steps.push(...inner);
      if (andThen === 'exit') exits.push(steps.push({ kind: 'jump', to: 0 }) - 1);
      else if (andThen !== 'go on') andThen();
      steps[at] = { kind: 'branch', set, otherwise: steps.length };
    };
    /** Ends an absent value where the row or the separator shows that nothing more belongs to it. */
    const exitAtEnd = (): void => {
      if (isLast) exits.push(steps.push({ kind: 'branch', set: allBytes, otherwise: 0 }) - 1);
      else where(separators, [], 'exit');
    };
    const field = fields[i]!;
    const begin: LineStep[] = field < 0 ? [] : [{ kind: 'begin', field }];
    const end: LineStep[] = field < 0 ? [] : [{ kind: 'end', field }];
    if (field >= 0 && !isWords) exitAtEnd();
    steps.push(...begin);
    if (quotes !== 'none') {
      const mark: LineStep = { kind: 'one', set: only(quote) };
      const text: LineStep = { kind: 'run', set: only(quote).map((flag) => 1 - flag), least: 0 };
      where(only(quote), [mark, ...begin, text, ...end, mark], 'exit');
    }
    if (field >= 0 && form.empty !== '')
      where(
        only(form.empty.charCodeAt(0)),
        [...end, { kind: 'literal', bytes: Buffer.from(form.empty) }],
        'exit',
      );
    if (field >= 0 && unset.length === 1)
      where(only(unset[0]!), [{ kind: 'one', set: only(unset[0]!) }], exitAtEnd);
    steps.push({ kind: 'run', set: inValue, least: isWords ? 1 : 0 }, ...end);
    for (const at of exits) {
      const step = steps[at]!;
      steps[at] =
        step.kind === 'branch' ? { ...step, otherwise: steps.length } : { kind: 'jump', to: steps.length };
    }
    steps.push(isLast ? { kind: 'line end' } : { kind: 'one', set: separators });
  });
  return [...steps, { kind: 'accept' }];
}
