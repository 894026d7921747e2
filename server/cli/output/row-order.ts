import type { AttachedStats } from '../../../engine/index.js';
import { formatCount, formatCounted } from './figures.js';

/** Says how many attached files have their rows ordered by time, and how many row groups must be sorted when they are read. */
export function describeRowOrder({ files, order }: Pick<AttachedStats, 'files' | 'order'>): string {
  const { filesUnordered, rowGroups, rowGroupsUnordered, runs } = order;
  const ordered = `${formatCount(files - filesUnordered)} of ${formatCounted(files, 'file')}`;
  const sorted =
    rowGroupsUnordered === 0
      ? ''
      : `, ${formatCount(rowGroupsUnordered)} of ${formatCounted(rowGroups, 'row group')} sorted as they are read`;
  return `${ordered}${sorted}; ${formatCounted(runs, 'run')} of rows`;
}
