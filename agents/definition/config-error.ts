import { LogstrataError } from '../../engine/index.js';

/** A problem in a configuration file. Line and column count from 1. */
export interface ConfigProblem {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** A sentence that says what is wrong and what was expected. */
  readonly message: string;
}

/** All problems of one or more configuration files; the message has one line for each. */
export class ConfigError extends LogstrataError {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    const first = problems[0];
    super('invalid', problems.map(formatProblem).join('\n'), first === undefined ? {} : { path: first.file });
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** Formats a problem as `agents/nginx.yaml:7:5: unknown key "tpye"`, a form that editors and terminals turn into a link. */
export function formatProblem(problem: ConfigProblem): string {
  return `${problem.file}:${problem.line}:${problem.column}: ${problem.message}`;
}
