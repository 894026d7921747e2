import { dayOfPartition } from '../../terms/cursor.js';
import { buildingFolder } from './committer.js';
import type { Directory } from '../disk/directory.js';

/** Path where segment `index` of a unit is built. */
export function buildingPath(agent: string, id: string, index: number): string {
  return `${buildingFolder(agent, id)}/${segmentNumber(index)}.parquet`;
}

/** Name of the published segment, relative to the agent's folder, in the folder of its day. */
export function segmentFile(id: string, index: number, partition: number): string {
  return `dt=${dayOfPartition(partition)}/${id}-${segmentNumber(index)}.parquet`;
}

function segmentNumber(index: number): string {
  return String(index).padStart(5, '0');
}

/** Moves a finished file to its final place under the agent's folder, durably. It becomes part of the archive once a manifest names it. */
export async function moveIntoPlace(
  directory: Directory,
  agent: string,
  from: string,
  file: string,
): Promise<void> {
  const folder = `${agent}/${file.slice(0, file.lastIndexOf('/'))}`;
  await directory.makeDirectory(folder);
  await directory.rename(from, `${agent}/${file}`);
  await directory.syncDirectory(folder);
}
