import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { packageRoot } from '../options/package-root.js';

/** A sample log of the package. The file has the name of the agent that reads it. */
export interface SampleLog {
  readonly agent: string;
  readonly path: string;
}

/** The sample logs of the package, by name. */
export function sampleLogs(): SampleLog[] {
  const folder = join(packageRoot(), 'data', 'samples');
  return readdirSync(folder)
    .filter((name) => name.endsWith('.log'))
    .sort()
    .map((name) => ({ agent: basename(name, '.log'), path: join(folder, name) }));
}

/** Example queries about the samples, URL-encoded. Each returns records. */
export const sampleQueries: readonly { readonly agent: string; readonly query: string }[] = [
  { agent: 'nginx', query: 'limit=5' },
  { agent: 'nginx', query: 'status__gte=500&time__since=2026-11-18&time__until=2026-11-19' },
  { agent: 'app', query: 'level__exact=error&message__like=no%20space&limit=3' },
];
