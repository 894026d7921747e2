import type { Archive } from '../../../engine/index.js';
import { withProgress, type Progress } from '../output/progress.js';
import { printJson, printLines } from '../output/terminal.js';
import { agentsOf } from './opened-archive.js';

/** What a command does with each agent. */
export interface EachAgent<Report> {
  /** `verifying`, for the progress that is shown. */
  readonly doing: string;
  readonly work: (agent: string, progress: Progress) => Promise<Report>;
  readonly describe: (agent: string, report: Report) => readonly string[];
}

/**
 * Does something with the named agent, or with all. Prints what came of each as soon as it is known; with `json` one answer in the end, which
 * is an array where no agent was named.
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

/** What is said of a data folder without agents. */
export function noRecordsYet({ location }: Archive): string {
  return `no records in ${location} yet`;
}
