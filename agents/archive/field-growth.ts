import { LogstrataError } from '../../engine/index.js';
import { schemaOf } from '../definition/agent-file.js';
import type { AgentDefinition } from '../definition/definition.js';
import type { Footer, FooterRead } from './file-footers.js';
import type { FoundFile, PathProblem } from './found-files.js';
import { FieldInference, type InferredField } from './inferred-fields.js';

/** The fields of an agent whose fields are the columns of its files. New files may add fields; those that do not fit the existing ones without loss are refused. */
export class FieldGrowth {
  private fields: readonly InferredField[];
  private readonly leftOut = new Set<string>();

  /** @param onLeftOut receives once each message about columns that are no fields */
  constructor(
    private readonly definition: AgentDefinition,
    private readonly onLeftOut: (message: string) => void,
  ) {
    this.fields = definition.fields.map(({ name, type, source, unit }) => ({
      name,
      type,
      column: source,
      unit,
    }));
  }

  /** Decides which files agree with the fields, and gives the reasons for the others. `definition` is set where there are new fields. */
  take(
    files: readonly FoundFile[],
    footers: ReadonlyMap<string, FooterRead>,
  ): {
    readonly taken: readonly FoundFile[];
    readonly refused: readonly PathProblem[];
    readonly definition: AgentDefinition | undefined;
  } {
    const before = this.fields;
    const taken: FoundFile[] = [];
    const refused: PathProblem[] = [];
    for (const file of files) {
      const footer = footers.get(file.path);
      if (footer === undefined || footer instanceof LogstrataError) continue;
      const problem = this.grow(file, footer);
      if (problem === undefined) taken.push(file);
      else refused.push({ path: file.path, message: problem });
    }
    return { taken, refused, definition: this.fields === before ? undefined : this.grown() };
  }

  private grow(file: FoundFile, footer: Footer): string | undefined {
    const inference = new FieldInference(this.fields);
    inference.add(file, footer);
    const { columns, problems, leftOut } = inference.finish(undefined);
    if (problems[0] !== undefined) return problems[0];
    for (const message of leftOut) if (!this.leftOut.has(message)) this.onLeftOut(message);
    leftOut.forEach((message) => this.leftOut.add(message));
    const found = new Map(columns.map(({ field }) => [field.name, field]));
    const known = this.fields.map((field) => ({ ...field, type: found.get(field.name)?.type ?? field.type }));
    for (const { name } of known) found.delete(name);
    const isOther = known.some(({ type }, i) => type !== this.fields[i]!.type);
    if (isOther || found.size > 0) this.fields = [...known, ...found.values()];
    return undefined;
  }

  private grown(): AgentDefinition {
    const fields = this.fields.map(({ name, type, column, unit }) => ({
      name,
      type,
      source: column,
      ...(unit === undefined ? {} : { unit }),
    }));
    return { ...this.definition, fields, schema: schemaOf(fields, true) };
  }
}
