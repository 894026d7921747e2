import type { Restorable } from '../../../engine/index.js';
import { shellWord, shownLine } from '../../../agents/decode/line-text.js';
import { formatCounted } from '../output/figures.js';

/** Loads that are listed; the JSON answer has them all. */
const loadsShownMax = 20;

/** The commands that bring lost records back, and how many each. */
export function describeRestorable(agent: string, restorable: readonly Restorable[]): string[] {
  const lines = restorable.slice(0, loadsShownMax).map(({ records, paths }) => {
    const words = paths.map((path) => shellWord(Buffer.from(path)) ?? shownLine(Buffer.from(path)));
    const command = ['logstrata load', agent, ...words].join(' ');
    return `lost     ${agent}: ${formatCounted(records, 'record')}; what brings them back: ${command}`;
  });
  const more = restorable.length - loadsShownMax;
  if (more > 0)
    lines.push(`         and those of ${formatCounted(more, 'more load')}; --json lists them all`);
  return lines;
}
