import { LogstrataError } from '../../engine/index.js';

/** One mistake in a configuration file; line and column count from 1. */
export interface ConfigProblem {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** A sentence that says what stands there and what was expected. */
  readonly message: string;
}

/** Everything that is wrong with one or more configuration files, one line each. */
export class ConfigError extends LogstrataError {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    const first = problems[0];
    super('invalid', problems.map(formatProblem).join('\n'), first === undefined ? {} : { path: first.file });
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** `agents/nginx.yaml:7:5: unknown key "tpye"`, which editors and terminals make a link of. */
export function formatProblem(problem: ConfigProblem): string {
  return `${problem.file}:${problem.line}:${problem.column}: ${problem.message}`;
}
