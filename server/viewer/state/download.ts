import { readBody, type ServerDoor } from '../api/server-door.js';
import { requestPath, type Question } from '../query/question.js';

/** The options of a download. */
export interface DownloadForm {
  readonly format: 'jsonl' | 'csv';
  /** Number of records: the newest of those that match. */
  readonly limit: number;
  /** The fields in this order; undefined for all. */
  readonly fields: readonly string[] | undefined;
}

/** The path of the request whose response is saved. */
export function downloadPath(question: Question, { format, limit, fields }: DownloadForm): string {
  const more: (readonly [string, string])[] = [
    ['format', format],
    ['limit', String(limit)],
  ];
  if (fields !== undefined) more.push(['fields', fields.join(',')]);
  return requestPath('query', question, more);
}

/**
 * Saves a response as a file. The page sends the request itself instead of following a link, so that the token is sent, and an error is
 * shown in the page instead of being saved.
 */
export async function saveDownload(door: ServerDoor, path: string, name: string): Promise<void> {
  const response = await door.get(path);
  const blob = await readBody(() => response.blob());
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser needs the URL only until the click has been handled.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
