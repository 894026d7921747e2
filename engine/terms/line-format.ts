/**
 * How the records of an answer are written, each as a line: `jsonl` as objects of JSON, `json` as the elements of an array, `csv` as
 * records of RFC 4180 behind a header.
 */
export const lineFormats = ['jsonl', 'json', 'csv'] as const;
export type LineFormat = (typeof lineFormats)[number];
