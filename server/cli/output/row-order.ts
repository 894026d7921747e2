import type { AttachedStats } from '../../../engine/index.js';
import { formatCount, formatCounted } from './figures.js';

/** How the rows of files in place lie among the hours, and what that costs. */
export function describeRowOrder({ files, order }: Pick<AttachedStats, 'files' | 'order'>): string {
  const { filesUnordered, rowGroups, rowGroupsUnordered, runs } = order;
  const ordered = `${formatCount(files - filesUnordered)} of ${formatCounted(files, 'file')}`;
  const sorted =
    rowGroupsUnordered === 0
      ? ''
      : `, ${formatCount(rowGroupsUnordered)} of ${formatCounted(rowGroups, 'row group')} sorted as they are read`;
  return `${ordered}${sorted}; ${formatCounted(runs, 'run')} of rows`;
}
