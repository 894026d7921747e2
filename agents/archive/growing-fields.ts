import type { ObjectStorage } from '../../engine/index.js';
import type { CollectLog } from '../collect/logs/collect-log.js';
import type { AgentDefinition, ArchiveInput } from '../definition/definition.js';
import { FieldGrowth } from './field-growth.js';
import { FileFooters } from './file-footers.js';
import type { FoundFile } from './found-files.js';

/** Options of growing an agent's fields. */
export interface GrowingFieldsOptions {
  readonly definition: AgentDefinition;
  readonly archive: ArchiveInput;
  readonly log: Pick<CollectLog, 'warn'>;
  /** Object storage for `s3://` paths. */
  readonly objects?: ObjectStorage | undefined;
  /** Adds fields to the agent. */
  readonly redefine: (definition: AgentDefinition) => Promise<void>;
}

/**
 * The fields of an agent while its files are imported. Where the agent's fields are the columns of its files, a file with
 * new columns adds fields.
 */
export class GrowingFields {
  private readonly growth: FieldGrowth;
  private readonly footers: FileFooters;
  private current: AgentDefinition;

  constructor(private readonly options: GrowingFieldsOptions) {
    const { definition, log } = options;
    this.growth = new FieldGrowth(definition, (message) => log.warn({ agent: definition.name }, message));
    this.footers = new FileFooters(options.objects);
    this.current = options.definition;
  }

  /** The agent with its current fields. */
  get definition(): AgentDefinition {
    return this.current;
  }

  /**
   * Adds fields for the columns of a file. Returns why the file can't be stored where its columns do not agree with the
   * fields. Read errors are reported later, by the import of the file.
   */
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
