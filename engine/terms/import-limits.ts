/**
 * Gaps in the cursors of one import. Each gap ends a run, and the manifest, which is rewritten with each commit, takes some 30 bytes per
 * run. The retention of the public service leaves few gaps, at the beginning.
 */
export const importedRunsMax = 256 * 1024;
