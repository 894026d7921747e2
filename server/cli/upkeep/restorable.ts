import type { Restorable } from '../../../engine/index.js';
import { shellPath } from '../../../agents/sources/shell-path.js';
import { formatCounted } from '../output/figures.js';

/** Maximum number of loads that are listed; the JSON output has all. */
const loadsShownMax = 20;

/** Lines with the commands that restore lost records, and the number of records of each. */
export function describeRestorable(agent: string, restorable: readonly Restorable[]): string[] {
  const lines = restorable.slice(0, loadsShownMax).map(({ records, paths }) => {
    const command = ['logstrata load', agent, ...paths.map(shellPath)].join(' ');
    return `lost     ${agent}: ${formatCounted(records, 'record')}; to restore them: ${command}`;
  });
  const more = restorable.length - loadsShownMax;
  if (more > 0)
    lines.push(`         and those of ${formatCounted(more, 'more load')}; --json lists them all`);
  return lines;
}
