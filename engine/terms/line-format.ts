/**
 * How the records of an answer are written, one per line: `jsonl` as JSON objects, `json` as the elements of an array, `csv` as records of
 * RFC 4180 after a header.
 */
export const lineFormats = ['jsonl', 'json', 'csv'] as const;
export type LineFormat = (typeof lineFormats)[number];
