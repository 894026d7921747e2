import { createRequire } from 'node:module';

/** How a column of a file is written; the types are those of the package. */
export interface ParquetJsField {
  readonly type: string;
  readonly optional?: boolean;
  readonly repeated?: boolean;
  readonly compression: string;
  readonly encoding?: string;
}

interface ParquetJsWriter {
  appendRow(row: Record<string, unknown>): Promise<void>;
  close(): Promise<void>;
}

interface ParquetJs {
  readonly ParquetSchema: new (fields: Record<string, ParquetJsField>) => object;
  readonly ParquetWriter: {
    openFile(schema: object, path: string, options: object): Promise<ParquetJsWriter>;
  };
}

/** Writes a file with parquetjs, which has no type declarations. */
export async function writeParquetJs(
  path: string,
  fields: Record<string, ParquetJsField>,
  rows: readonly Record<string, unknown>[],
  options: { readonly useDataPageV2: boolean; readonly rowGroupSize: number; readonly pageSize: number },
): Promise<void> {
  const { ParquetSchema, ParquetWriter } = createRequire(import.meta.url)('parquetjs-lite') as ParquetJs;
  const writer = await ParquetWriter.openFile(new ParquetSchema(fields), path, options);
  for (const row of rows) await writer.appendRow(row);
  await writer.close();
}
