/**
 * Gaps in the cursors of one import: the manifest, which is written anew with each commit, names the run between each two of them, in some 30
 * bytes. Retention of the public service leaves few, at the beginning.
 */
export const importedRunsMax = 256 * 1024;
