import { Finding } from './runner.js';
import type { AnswerDigest } from './answer-digest.js';
import type { Question } from './question.js';
import type { SideClient } from './side-client.js';
import type { SideName } from './side.js';
import { spreadOf, type Spread } from './spread.js';

/** How often and how long a question is repeated. */
export interface Pace {
  /** Rounds for questions with a fast answer. In a round every side has one turn. */
  readonly turns: number;
  /** Rounds for questions whose answer takes seconds. */
  readonly turnsWhenSlow: number;
  /** Milliseconds that a turn lasts at least; it always has at least one run. */
  readonly turnMs: number;
}

/** Maximum number of runs in a turn: enough for a median of answers that take microseconds. */
const runsInTurnMax = 50;
/** Milliseconds from which a question gets the few rounds of `turnsWhenSlow`: the relative spread of slow answers is small. */
const slowMs = 1500;
const coldTurnsMax = 5;

/** The answers of the sides to a question differ, or are not the expected ones. */
export class AnswerMismatch extends Finding {}

/**
 * Asks every side once and compares the answers: they must have the same number of records with the same values in the same order. Throws
 * `AnswerMismatch` where one differs.
 */
export async function checkAnswers(
  question: Question,
  sides: readonly SideClient[],
): Promise<{ answer: AnswerDigest; slowestMs: number }> {
  const answers: [SideName, AnswerDigest][] = [];
  let slowestMs = 0;
  for (const side of sides) {
    const startMs = performance.now();
    answers.push([side.name, await side.request({ kind: 'check', question })]);
    slowestMs = Math.max(slowestMs, performance.now() - startMs);
  }
  const [first] = answers;
  if (first === undefined) throw new AnswerMismatch(`no side can be asked "${question.title}"`);
  const isRight = answers.every(
    ([, { rows, digest }]) => rows === first[1].rows && digest === first[1].digest,
  );
  const isExpected = question.rowsExpected === undefined || first[1].rows === question.rowsExpected;
  if (!isRight || !isExpected) {
    const said = answers.map(([name, { rows, digest }]) => `${name}: ${rows} records, digest ${digest}`);
    const expected =
      question.rowsExpected === undefined ? '' : ` (${question.rowsExpected} records expected)`;
    throw new AnswerMismatch(
      `the answers to "${question.title}" differ or are wrong${expected}:\n  ${said.join('\n  ')}`,
    );
  }
  return { answer: first[1], slowestMs };
}

/**
 * Measures a question on all sides in rounds. Each side has one turn per round, and each round begins with another side, so that other load
 * of the machine affects all sides alike. tinybench would run one side to its end before the next, and can't run sides in other processes.
 */
export async function timeSides(
  question: Question,
  sides: readonly SideClient[],
  slowestMs: number,
  pace: Pace,
): Promise<Record<string, Spread>> {
  const isCold = question.isCold === true;
  const turns = Math.min(
    pace.turns,
    slowestMs >= slowMs ? pace.turnsWhenSlow : pace.turns,
    isCold ? coldTurnsMax : pace.turns,
  );
  const timeOf = (side: SideClient): Promise<number[]> =>
    side.request({ kind: 'time', question, budgetMs: pace.turnMs, runsMax: isCold ? 1 : runsInTurnMax });
  // A warm-up turn that is not counted: a single answer is not enough to warm up a JIT compiler, or threads that start with it.
  if (!isCold) for (const side of sides) await timeOf(side);
  const runs = new Map<SideClient, number[]>(sides.map((side) => [side, []]));
  for (let turn = 0; turn < turns; turn++) {
    for (let i = 0; i < sides.length; i++) {
      const side = sides[(i + turn) % sides.length]!;
      runs.get(side)!.push(...(await timeOf(side)));
    }
  }
  return Object.fromEntries(sides.map((side) => [side.name, spreadOf(runs.get(side)!)]));
}
