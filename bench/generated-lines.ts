import { appRecordLines } from './app-records.js';
import { webRecordAsCombined, webRecordAsJson, webRecords } from './web-records.js';
import type { RecordOptions, WebRecord } from './web-records.js';

/** The generated lines of a format, without line ends. `format` is `json`, `combined` or `app`; undefined for any other. */
export function generateLines(format: string, options: RecordOptions): Generator<string> | undefined {
  switch (format) {
    case 'json':
      return mapLines(options, webRecordAsJson);
    case 'combined':
      return mapLines(options, webRecordAsCombined);
    case 'app':
      return appRecordLines(options);
    default:
      return undefined;
  }
}

function* mapLines(options: RecordOptions, format: (record: WebRecord) => string): Generator<string> {
  for (const record of webRecords(options)) yield format(record);
}
