import type { ObjectStorage } from '../../engine/index.js';
import type { AgentDefinition, ArchiveInput } from '../definition/definition.js';
import { FieldGrowth } from './field-growth.js';
import { FileFooters } from './file-footers.js';
import type { FoundFile } from './found-files.js';

export interface GrowingFieldsOptions {
  readonly definition: AgentDefinition;
  readonly archive: ArchiveInput;
  /** Where `s3://` paths lead. */
  readonly objects?: ObjectStorage | undefined;
  /** Gives the agent more fields. */
  readonly redefine: (definition: AgentDefinition) => Promise<void>;
}

/** The fields of an agent while its files are stored: where they are the columns of those, a file that has others brings them along. */
export class GrowingFields {
  private readonly growth: FieldGrowth;
  private readonly footers: FileFooters;
  private current: AgentDefinition;

  constructor(private readonly options: GrowingFieldsOptions) {
    this.growth = new FieldGrowth(options.definition);
    this.footers = new FileFooters(options.objects);
    this.current = options.definition;
  }

  /** The agent with the fields that it has by now. */
  get definition(): AgentDefinition {
    return this.current;
  }

  /** Makes fields of the columns of a file. Says why it can't be stored where they don't agree; what can't be read is told by who reads it. */
  async take(file: FoundFile, signal: AbortSignal | undefined): Promise<string | undefined> {
    if (!this.options.archive.infersFields) return undefined;
    const footers = await this.footers.read([file], signal);
    this.footers.keep([file]);
    const { refused, definition } = this.growth.take([file], footers);
    if (definition !== undefined) {
      await this.options.redefine(definition);
      this.current = definition;
    }
    return refused[0]?.message;
  }
}
