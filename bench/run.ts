#!/usr/bin/env node
import { runBenchmark, type Benchmark } from './runner.js';

/** Where each benchmark is. Without a name, the one that compares runs. */
const modules = {
  compare: './compare.js',
  growth: './growth/run.js',
  years: './years/run.js',
  archives: './archives/run.js',
  collecting: './collecting/run.js',
  following: './following/run.js',
  several: './several/run.js',
  soak: './soak/run.js',
  far: './far/run.js',
  viewer: './viewer/run.js',
  datasets: './datasets/run.js',
} as const;

const args = process.argv.slice(2);
// `--clickbench FILE` and `--jsonbench FILE` name it by themselves.
if (/^--(clickbench|jsonbench)(=|$)/.test(args[0] ?? '')) args.unshift('datasets');
const name = Object.keys(modules).find((each) => each === args[0]) as keyof typeof modules | undefined;
const { benchmark } = (await import(modules[name ?? 'compare'])) as { benchmark: Benchmark };
process.exitCode = await runBenchmark(benchmark, name === undefined ? args : args.slice(1));
