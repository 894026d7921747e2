import { expect, it } from 'vitest';
import { jsonKernelCases } from '../../bench/json-kernels.js';
import { measureCase } from '../../bench/kernel-case.js';
import { webColumns } from '../../bench/kernel-columns.js';
import { KernelMemory } from '../../bench/kernel-memory.js';
import { lineKernelCases } from '../../bench/line-kernels.js';
import { pageKernelCases } from '../../bench/page-kernels.js';
import { scanKernelCases } from '../../bench/scan-kernels.js';

it('the kernel bench times every case on results that agree', () => {
  const columns = webColumns(3000);
  const memory = new KernelMemory(16 * 1024 * 1024);
  const cases = [
    ...pageKernelCases(columns),
    ...scanKernelCases(columns, memory),
    ...jsonKernelCases(columns, memory),
    ...lineKernelCases(3000),
  ];
  expect(cases.length).toBeGreaterThan(30);
  for (const kernelCase of cases) {
    const rates = measureCase(kernelCase, true);
    expect([rates.name, rates.plain > 0, rates.kernel > 0]).toEqual([kernelCase.name, true, true]);
  }
  const [first] = cases;
  const wrong = { ...first!, kernel: () => new Uint8Array(1) };
  expect(() => measureCase(wrong, true)).toThrow('differ');
});
