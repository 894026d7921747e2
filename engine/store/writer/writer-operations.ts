import { LogstrataError, isLogstrataError } from '../../core/errors.js';
import { makeSchema, sameSchema, type Field, type Schema } from '../../core/schema.js';
import type { AgentWriter } from './agent-writer.js';
import { decodeBatch } from '../hot/batch-codec.js';
import type { CommitExtras } from '../manifest/commit.js';
import type { Heads } from '../reading/recovery.js';
import type { ChannelOperation, ChannelOperations } from './writer-channel.js';

/** The committed state of an agent that has no records yet. */
const noHeads: Heads = { manifest: 0, hot: {} };

/** The methods of a writer that are called in another process with the arguments that they have here. */
const passedOn = ['reserve', 'publish', 'end', 'attach', 'changeFar', 'seal'] as const;
export type PassedOn = (typeof passedOn)[number];

/**
 * The operations that other processes may request of the writer. Each process has one connection: when it ends, for any reason, the units
 * of work that it began end too.
 */
export function writerOperations(
  writerOf: (agent: string, schema?: Schema) => Promise<AgentWriter>,
): ChannelOperations {
  const writer = (args: unknown) => writerOf((args as { agent: string }).agent);
  const pass =
    (name: PassedOn): ChannelOperation =>
    async (args) => {
      const target = await writer(args);
      const call = target[name] as (...given: unknown[]) => Promise<unknown>;
      return call.apply(target, (args as { given: unknown[] }).given);
    };
  return {
    heads: async (args) => {
      try {
        return (await writer(args)).heads();
      } catch (error) {
        // The agent's first records may come from the process that asks.
        if (isLogstrataError(error) && error.code === 'not_found') return noHeads;
        throw error;
      }
    },
    open: async (args) => {
      const { agent, schema } = args as { agent: string; schema: { fields: Field[] } };
      const wanted = makeSchema(schema.fields);
      const target = await writerOf(agent, wanted);
      assertSameFields(agent, target.schema, wanted);
      return { schemaVersion: target.schemaVersion };
    },
    begin: async (args, _payload, connection) => {
      const target = await writer(args);
      const id = await target.begin();
      connection.onClose(() => target.end(id));
      return id;
    },
    ...Object.fromEntries(passedOn.map((name) => [name, pass(name)])),
    append: async (args, payload) => {
      const { extras, placement } = args as { extras: EncodedExtras; placement: 'live' | 'load' };
      const target = await writer(args);
      target.assertVersion(extras.schemaVersion);
      return target.append(decodeBatch(target.schema, payload), decodeExtras(extras), placement);
    },
  };
}

/** The same operations, each of which throws `locked`. */
export function refused(operations: ChannelOperations, message: string): ChannelOperations {
  const refuse = () => Promise.reject(new LogstrataError('locked', message));
  return Object.fromEntries(Object.keys(operations).map((name) => [name, refuse]));
}

function assertSameFields(agent: string, current: Schema, wanted: Schema): void {
  if (sameSchema(current, wanted)) return;
  const text = (schema: Schema) => schema.fields.map((field) => `${field.name} ${field.type}`).join(', ');
  throw new LogstrataError(
    'conflict',
    `the process that writes to this folder has other fields for agent "${agent}" (${text(current)}) than this one ` +
      `(${text(wanted)}): make it reload the changed file (SIGHUP or a restart)`,
  );
}

type EncodedExtras = Omit<CommitExtras, 'rejected'> & {
  readonly rejected: readonly { reason: string; file: string; offset: number; line: string }[];
};

/** Extras in a form that JSON can represent: the bytes of rejected lines as base64. */
export function encodeExtras(extras: CommitExtras): EncodedExtras {
  const rejected = extras.rejected.map((rejectedLine) => {
    const { buffer, byteOffset, length } = rejectedLine.line;
    return { ...rejectedLine, line: Buffer.from(buffer, byteOffset, length).toString('base64') };
  });
  return { ...extras, rejected };
}

function decodeExtras(extras: EncodedExtras): CommitExtras {
  return {
    ...extras,
    rejected: extras.rejected.map((line) => ({ ...line, line: Buffer.from(line.line, 'base64') })),
  };
}
