#!/usr/bin/env node
import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, relative } from 'node:path';
import { UsageFailure } from '../options.js';
import { billionReport, runBillion } from './billion.js';
import { plotGrowth } from '../report/growth-plot.js';
import { runGrowth } from './growth.js';
import { growthUsage, readGrowthOptions, type GrowthOptions } from './options.js';
import { growthReport } from './table.js';

function tell(line: string): void {
  process.stderr.write(`growth: ${line}\n`);
}

const asJson = (result: object): string => `${JSON.stringify(result, null, 1)}\n`;

/** Writes files by their endings, and prints the Markdown. */
function write(outPath: string, files: { readonly md: string } & Readonly<Record<string, string>>): void {
  mkdirSync(dirname(outPath), { recursive: true });
  for (const [ending, content] of Object.entries(files)) writeFileSync(`${outPath}.${ending}`, content);
  const endings = Object.keys(files).join(', .');
  process.stdout.write(`${files.md}\nwritten  ${relative(process.cwd(), outPath)}.${endings}\n`);
}

/** Runs the chosen measurement. All files are written at the end. */
async function run(options: GrowthOptions, signal: AbortSignal): Promise<void> {
  const startMs = performance.now();
  const say = (what: string): void =>
    tell(`${((performance.now() - startMs) / 1000).toFixed(0).padStart(5)} s  ${what}`);
  const { outPath } = options;
  if (options.billion) {
    const result = await runBillion(options, signal, say);
    write(outPath, { md: billionReport(result), json: asJson(result) });
  } else {
    const result = await runGrowth(options, signal, say);
    const md = growthReport(result, `${basename(outPath)}.svg`);
    write(outPath, { md, svg: plotGrowth(result), json: asJson(result) });
  }
}

/** The command. Returns exit code 2 for wrong usage, 130 after Ctrl-C, which leaves no files behind. */
async function main(): Promise<number> {
  const end = new AbortController();
  process.on('SIGINT', () => end.abort());
  try {
    const options = readGrowthOptions(process.argv.slice(2));
    if (options === undefined) process.stdout.write(growthUsage);
    else await run(options, end.signal);
    return 0;
  } catch (error) {
    if (error instanceof UsageFailure) {
      tell(`${error.message}\n\n${growthUsage}`);
      return 2;
    }
    if (end.signal.aborted) {
      tell('ended; nothing is left of it');
      return 130;
    }
    tell(error instanceof Error ? error.stack! : String(error));
    return 1;
  }
}

process.exitCode = await main();
