import type { FarAnswer, FarSource, SourceQuestion } from '../../engine/far/far-cluster.js';
import { columnOfField } from '../../engine/far/far-sql.js';
import { readNative } from '../../engine/far/native-format.js';
import type { FarCopy, OrdinalRun, Run } from '../../engine/store/manifest/manifest.js';
import {
  borderOf,
  decodeBorder,
  encodeBorder,
  type Border,
  type BorderUnit,
} from '../../engine/far/border.js';
import {
  rowsBetween,
  type WriterQuestion,
  type WriterAgents,
  type WriterClient,
  type RowsAnswer,
} from '../../engine/far/reader-state.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import { rowGroupRowsMax } from '../../engine/core/limits.js';
import { takeRows } from '../../engine/columns/take.js';

/** Units that are claimed to be in a far tier, which only the readers know of: their rows come from the writer. */
export class LyingCluster implements FarSource {
  readonly units: BorderUnit[] = [];
  asked = 0;
  readonly #store: AgentStore;
  readonly #random: () => number;

  constructor(store: AgentStore, random: () => number) {
    this.#store = store;
    this.#random = random;
  }

  /** Turns a random part of the near records into a unit. */
  async ship(): Promise<void> {
    const { near } = decodeBorder(this.borderOf(await borderOf(this.#store), null), null);
    const runs: Run[] = [];
    let rows = 0;
    for (const run of near) {
      const from = Math.floor(this.#random() * run.rows);
      const count = Math.min(run.rows - from, 1 + Math.floor(this.#random() * 40));
      if (this.#random() < 0.3) continue;
      runs.push({
        partition: run.partition,
        firstOrdinal: run.firstOrdinal + from,
        firstRow: rows,
        rows: count,
      });
      rows += count;
    }
    if (rows === 0) return;
    const id = (this.units.length + 1).toString(16).padStart(16, '0');
    const shard = this.units.length % 2;
    const facts = {
      unit: id,
      attempt: id,
      shard,
      rows,
      bytes: rows * 100,
      checksum: id,
      shippedMs: 0,
      isOnly: false,
    };
    this.units.push({ runs, timeMinMs: null, timeMaxMs: null, schemaVersion: 1, copy: facts });
  }

  /** The writer's border with these units. */
  borderOf(border: Border, known: string | null): string {
    const gone = this.units.flatMap(({ runs }) => runs);
    const near = border.near.flatMap((run) => without(run, gone));
    const schemas = [{ version: 1, schema: border.schema }];
    const far = { tag: `lie ${this.units.length}`, schemas, units: [...this.units] };
    return encodeBorder({ ...border, near, far }, known);
  }

  async ask({ copies, from, to, direction, limit, schema, shown }: SourceQuestion): Promise<FarAnswer> {
    this.asked++;
    const runs = this.#runsOf(copies);
    const fields = schema.fields.map(({ name }) => shown.fields.findIndex((field) => field.name === name));
    const whole = { from, to, direction: 'forward' as const, limit: rowGroupRowsMax, predicates: [], fields };
    const { bytes } = await rowsBetween(this.#store, whole);
    const all = readNative(bytes, schema, schema.fields.map(columnOfField));
    const own = [...all.ordinals.keys()].filter((row) =>
      runs.some((run) => holds(run, all.partitions[row]!, all.ordinals[row]!)),
    );
    const taken = direction === 'forward' ? own.slice(0, limit) : own.slice(-limit);
    return {
      partitions: Uint32Array.from(taken, (row) => all.partitions[row]!),
      ordinals: Float64Array.from(taken, (row) => all.ordinals[row]!),
      batch: takeRows(all.batch, Uint32Array.from(taken)),
      isCut: taken.length >= limit,
      bytes: bytes.length,
    };
  }

  #runsOf(copies: readonly FarCopy[]): OrdinalRun[] {
    return copies.flatMap(({ attempt }) => {
      const unit = this.units.find(({ copy }) => copy.attempt === attempt);
      return unit === undefined ? [] : unit.runs;
    });
  }
}

/** A connection to the writer that knows of the units, and sometimes returns only a part of the requested records. */
export class LyingDoor implements WriterClient {
  /** The requests to the writer. */
  readonly questions: WriterQuestion[] = [];
  readonly address: string;
  readonly #door: WriterClient;
  readonly #store: AgentStore;
  readonly #cluster: LyingCluster;
  readonly #random: () => number;

  constructor(door: WriterClient, store: AgentStore, cluster: LyingCluster, random: () => number) {
    this.address = door.address;
    this.#door = door;
    this.#store = store;
    this.#cluster = cluster;
    this.#random = random;
  }

  agents(): Promise<WriterAgents> {
    return this.#door.agents();
  }

  async border(agent: string, known: string | null): Promise<string> {
    const { schema } = this.#store;
    const border = decodeBorder(await this.#door.border(agent, null), null);
    return this.#cluster.borderOf({ ...border, schema }, known);
  }

  async rows(question: WriterQuestion): Promise<RowsAnswer> {
    this.questions.push(question);
    const limit = Math.min(question.limit, 1 + Math.floor(this.#random() * 60));
    return this.#door.rows({ ...question, limit });
  }
}

function holds(run: OrdinalRun, partition: number, ordinal: number): boolean {
  return run.partition === partition && ordinal >= run.firstOrdinal && ordinal < run.firstOrdinal + run.rows;
}

/** The rest of a run. */
function without(run: OrdinalRun, gone: readonly OrdinalRun[]): OrdinalRun[] {
  const left: OrdinalRun[] = [];
  for (let i = 0; i < run.rows; i++) {
    const ordinal = run.firstOrdinal + i;
    if (gone.some((other) => holds(other, run.partition, ordinal))) continue;
    const last = left.at(-1);
    if (last !== undefined && last.firstOrdinal + last.rows === ordinal)
      left[left.length - 1] = { ...last, rows: last.rows + 1 };
    else left.push({ partition: run.partition, firstOrdinal: ordinal, rows: 1 });
  }
  return left;
}
