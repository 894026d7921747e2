#!/usr/bin/env node
import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, relative } from 'node:path';
import { AnswerMismatch } from './comparison.js';
import { runBenchmark } from './benchmark.js';
import { benchUsage, readBenchOptions, UsageFailure, type BenchOptions } from './options.js';
import { plotResult } from './report/plot.js';
import { describeRun, markdownReport, terminalTable } from './report/table.js';
import type { BenchResult } from './result.js';

function tell(line: string): void {
  process.stderr.write(`${line}\n`);
}

function print(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`);
}

function writeResult(result: BenchResult, outPath: string): void {
  mkdirSync(dirname(outPath), { recursive: true });
  writeFileSync(`${outPath}.json`, `${JSON.stringify(result, null, 2)}\n`);
  writeFileSync(`${outPath}.svg`, plotResult(result));
  writeFileSync(`${outPath}.md`, markdownReport(result, `${basename(outPath)}.svg`));
}

async function run(options: BenchOptions): Promise<void> {
  const startMs = performance.now();
  const result = await runBenchmark(options, (what) =>
    tell(`bench: ${((performance.now() - startMs) / 1000).toFixed(0).padStart(5)} s  ${what}`),
  );
  print(['', ...describeRun(result), '', ...terminalTable(result), '']);
  writeResult(result, options.outPath);
  print([`written: ${relative(process.cwd(), options.outPath)}.json, .md and .svg`]);
}

/** The command. Returns exit code 1 where an answer was wrong or something failed, 2 for wrong usage. */
async function main(): Promise<number> {
  try {
    const options = readBenchOptions(process.argv.slice(2));
    if (options === undefined) process.stdout.write(benchUsage);
    else await run(options);
    return 0;
  } catch (error) {
    if (error instanceof UsageFailure) {
      tell(`bench: ${error.message}\n\n${benchUsage}`);
      return 2;
    }
    tell(
      `bench: ${error instanceof AnswerMismatch ? error.message : error instanceof Error ? error.stack : String(error)}`,
    );
    return 1;
  }
}

process.exitCode = await main();
