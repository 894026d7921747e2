import { expect, it } from 'vitest';
import { measureCase } from '../../bench/kernel-case.js';
import { webColumns } from '../../bench/kernel-columns.js';
import { pageKernelCases } from '../../bench/page-kernels.js';

it('the kernel bench times every case on results that agree', () => {
  const cases = pageKernelCases(webColumns(3000));
  expect(cases.length).toBeGreaterThan(15);
  for (const kernelCase of cases) {
    const rates = measureCase(kernelCase, true);
    expect([rates.name, rates.plain > 0, rates.kernel > 0]).toEqual([kernelCase.name, true, true]);
  }
  const [first] = cases;
  const wrong = { ...first!, kernel: () => new Uint8Array(1) };
  expect(() => measureCase(wrong, true)).toThrow('differ');
});
