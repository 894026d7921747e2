import { readBody, type ServerDoor } from '../api/server-door.js';
import { requestPath, type Question } from '../query/question.js';

/** How records are written to a file. */
export interface DownloadForm {
  readonly format: 'jsonl' | 'csv';
  /** The newest of those that match. */
  readonly limit: number;
  /** In this order; all where undefined. */
  readonly fields: readonly string[] | undefined;
}

/** The request whose answer is the file. */
export function downloadPath(question: Question, { format, limit, fields }: DownloadForm): string {
  const more: (readonly [string, string])[] = [
    ['format', format],
    ['limit', String(limit)],
  ];
  if (fields !== undefined) more.push(['fields', fields.join(',')]);
  return requestPath('query', question, more);
}

/**
 * Has the browser save an answer. It comes by a request of the page and not by a link, so that the token goes along, and so that a refusal is
 * seen here and not found in a file.
 */
export async function saveDownload(door: ServerDoor, path: string, name: string): Promise<void> {
  const response = await door.get(path);
  const blob = await readBody(() => response.blob());
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser has taken hold of the content once the click is handled.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
