import type { Archive } from '../../../engine/index.js';
import { withProgress, type Progress } from '../output/progress.js';
import { printJson, printLines } from '../output/terminal.js';
import { agentsOf } from './opened-archive.js';

/** The work of a command on each agent, and how its result is shown. */
export interface EachAgent<Report> {
  /** A verb such as `verifying`, shown before the agent's name while the work runs. */
  readonly doing: string;
  readonly work: (agent: string, progress: Progress) => Promise<Report>;
  /** The result of one agent as lines of text. */
  readonly describe: (agent: string, report: Report) => readonly string[];
}

/**
 * Runs the work on the named agent, or on all. Without `json` the result of each agent is printed as soon as it is known. With `json` one
 * value is printed at the end: an object where an agent was named, else an array.
 */
export async function reportEach<Report extends object>(
  archive: Archive,
  agent: string | undefined,
  json: boolean | undefined,
  { doing, work, describe }: EachAgent<Report>,
): Promise<Report[]> {
  const reports: (Report & { readonly agent: string })[] = [];
  for (const name of await agentsOf(archive, agent)) {
    const report = await withProgress(`${doing} ${name}`, (progress) => work(name, progress));
    reports.push({ agent: name, ...report });
    if (json !== true) await printLines(describe(name, report));
  }
  if (json === true) await printJson(agent === undefined ? reports : reports[0]);
  else if (reports.length === 0) await printLines([noRecordsYet(archive)]);
  return reports;
}

/** The message for a data folder without records. */
export function noRecordsYet({ location }: Archive): string {
  return `no records in ${location} yet`;
}
