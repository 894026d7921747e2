import { describe, expect, it } from 'vitest';
import { answerOf } from '../model/answer.js';
import type { Answer, Answerer, CaseDataset, OpenedStore } from './answerer.js';
import { readCases } from './case-file.js';
import type { Case, Expected } from './case-file.js';

/** Declares one test for each case that the answerer supports. */
export function runConformance(answerer: Answerer): void {
  describe(`conformance of ${answerer.name}`, () => {
    for (const each of readCases()) {
      if (each.isHttp && !answerer.isHttp) continue;
      it(each.name, async () => {
        const store = await answerer.open(each.dataset, each.state);
        try {
          await runSteps(each, store);
        } finally {
          await store.close();
        }
      });
    }
  });
}

async function runSteps(each: Case, store: OpenedStore): Promise<void> {
  let begun: (() => Promise<Answer>) | undefined;
  for (const step of each.steps) {
    switch (step.kind) {
      case 'commit':
        await store.commit(each.dataset.commits.find(({ name }) => name === step.name)!);
        break;
      case 'restart':
        await store.restart();
        break;
      case 'compact':
        await store.compact();
        break;
      case 'begin':
        begun = await store.begin(step.request);
        break;
      case 'finish':
        check(each, step.expected, await begun!());
        break;
      case 'request': {
        const finish = await store.begin(step.request);
        check(each, step.expected, await finish(), step.request.target.slice(0, 200));
        break;
      }
    }
  }
}

function check(each: Case, expected: Expected, answer: Answer, target = ''): void {
  const hint = `${each.place} ${target}\n${answer.body.slice(0, 500)}`;
  expect(answer.status, hint).toBe(expected.status);
  for (const [name, value] of expected.headers) {
    const given = answer.headers.get(name.toLowerCase());
    if (value === '-') expect(given, hint).toBeUndefined();
    else if (value === '*') expect(given, hint).toBeDefined();
    else expect(given, hint).toBe(value);
  }
  if (expected.isEmpty) expect(answer.body, hint).toBe('');
  else if (expected.text !== undefined) expect(answer.body, hint).toBe(expected.text);
  else if (expected.status === 200) expect(answer.body, hint).toBe(bodyOf(each.dataset, expected.lines));
  else checkProblem(expected, answer, hint);
}

/** Statuses that an HTTP library may answer by itself, with a body of its own. */
const refusedByLibraries = [400, 431, 505];

function checkProblem(expected: Expected, answer: Answer, hint: string): void {
  if (!answer.headers.has('content-type') && refusedByLibraries.includes(expected.status)) return;
  const problem = JSON.parse(answer.body) as Record<string, unknown>;
  expect(problem, hint).toMatchObject({ status: expected.status });
  expect(typeof problem.type, hint).toBe('string');
  expect(typeof problem.title, hint).toBe('string');
  expect(problem.parameter ?? null, hint).toBe(expected.parameter);
  if (expected.says !== undefined) expect(problem.detail, hint).toContain(expected.says);
}

/** Labels become the lines of their records; lines stay as they are. */
function bodyOf(dataset: CaseDataset, lines: readonly string[]): string {
  return lines
    .map((line) => {
      if (line.startsWith('{')) return `${line}\n`;
      const record = dataset.labels.get(line);
      if (record === undefined) throw new Error(`${dataset.name} has no record "${line}"`);
      return answerOf({ schema: dataset.schema, records: [record] }, { limit: 1, predicates: [] });
    })
    .join('');
}
