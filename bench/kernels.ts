#!/usr/bin/env node
import { cpus } from 'node:os';
import { jsonKernelCases } from './json-kernels.js';
import { measureCase, type KernelCase } from './kernel-case.js';
import { webColumns } from './kernel-columns.js';
import { lineKernelCases } from './line-kernels.js';
import { KernelMemory } from './kernel-memory.js';
import { pageKernelCases } from './page-kernels.js';
import { scanKernelCases } from './scan-kernels.js';

const usage = `Usage: npm run --silent bench:kernels -- [options]

Times each kernel beside its plain TypeScript twin, on a row group of a web server's records, in GB/s.

  --rows N        rows of the row group (default 65536, which is the most)
  --quick         each side but once: that the results agree, not how long they take
  --only TEXT     only the cases with TEXT in their name
`;

function fail(message: string): never {
  process.stderr.write(`kernels: ${message}\n\n${usage}`);
  process.exit(2);
}

/** Room for two copies of a row group's columns, and for the output of scans. */
const kernelMemoryBytes = 64 * 1024 * 1024;

interface Options {
  rows: number;
  quick: boolean;
  only: string;
}

function readOptions(args: readonly string[]): Options {
  const options = { rows: 65536, quick: false, only: '' };
  for (let i = 0; i < args.length; i++) {
    const name = args[i]!;
    if (name === '--quick') options.quick = true;
    else if (name === '--only') options.only = args[++i] ?? fail('--only needs a text');
    else if (name === '--rows') options.rows = Number(args[++i]);
    else fail(`unknown option ${name}`);
  }
  if (!(Number.isInteger(options.rows) && options.rows >= 1 && options.rows <= 65536))
    fail('--rows must be a whole number from 1 to 65536');
  return options;
}

function copyCase(bytes: Uint8Array): KernelCase {
  const target = new Uint8Array(bytes.length);
  const copy = (): Uint8Array => {
    target.set(bytes);
    return target;
  };
  return { name: 'memcpy, for comparison', bytes: bytes.length, plain: copy, kernel: copy };
}

const options = readOptions(process.argv.slice(2));
const columns = webColumns(options.rows);
const memory = new KernelMemory(kernelMemoryBytes);
const cases = [
  copyCase(columns.message.bytes),
  ...pageKernelCases(columns),
  ...scanKernelCases(columns, memory),
  ...jsonKernelCases(columns, memory),
  ...lineKernelCases(options.rows),
].filter(({ name }) => name.includes(options.only));
const lines = [
  `${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.version}, ${options.rows} rows, GB/s`,
  '',
  '| step | twin | kernel | ratio |',
  '|---|---|---|---|',
];
process.stdout.write(`${lines.join('\n')}\n`);
for (const kernelCase of cases) {
  const { name, plain, kernel } = measureCase(kernelCase, options.quick);
  process.stdout.write(
    `| ${name} | ${plain.toFixed(2)} | ${kernel.toFixed(2)} | ${(kernel / plain).toFixed(1)} |\n`,
  );
}
