import { join } from 'node:path';
import { readAgentFile } from '../agents/definition/agent-file.js';
import { createRecordDecoder } from '../agents/decode/record-decoder.js';
import { BatchBuilder } from '../engine/columns/batch-builder.js';
import { packageRoot } from '../server/cli/options.js';
import { generateLines } from './generated-lines.js';
import type { KernelCase } from './kernel-case.js';

const inputs = [
  { name: 'JSON lines in, 12 columns', format: 'json', agent: 'bench/agents/web.yaml' },
  { name: "nginx's lines in, 12 columns", format: 'combined', agent: 'agents/nginx.yaml' },
] as const;

/** Cases for decoding lines into packed batches, one line at a time (plain) and many at once (kernel). Rates refer to the bytes of the lines. */
export function lineKernelCases(rows: number): KernelCase[] {
  return inputs.map(({ name, format, agent }) => {
    const options = { rows, days: 1, startMs: Date.UTC(2026, 9, 20), seed: 1 };
    const lines = Buffer.from([...generateLines(format, options)!, ''].join('\n'));
    const definition = readAgentFile(join(packageRoot(), agent));
    const decode = (columnar: boolean): (() => Uint8Array) => {
      const captures = new Map<string, string>();
      const settings = { captures, timezone: 'UTC', written: { byMs: 0 }, columnar };
      const decoder = createRecordDecoder(definition, settings);
      const builder = new BatchBuilder(definition.schema);
      return () => {
        const end = decoder.decode(lines, 0, lines.length, builder, (reason) => {
          throw new Error(`a line that was made up ${reason}`);
        });
        if (end !== lines.length) throw new Error('the lines do not fit one batch');
        return builder.finishPacked() ?? new Uint8Array(0);
      };
    };
    return { name, bytes: lines.length, plain: decode(false), kernel: decode(true) };
  });
}
