import { answered, type FarBed } from './far-bed.js';

/** What a server says of a statement that a query was compiled to. */
export interface Explained {
  /** The query, as it is asked here. */
  readonly asked: string;
  readonly statement: string;
  /** Of each index that the server asks, in its order: what it is, and how many granules it left of how many. */
  readonly indexes: readonly ExplainedIndex[];
}

export interface ExplainedIndex {
  readonly name: string;
  readonly granules: number;
  readonly granulesBefore: number;
}

/** Literals of positions and attempts, and the list of columns, take room and say nothing. */
function shortened(statement: string): string {
  return statement
    .replace(/SELECT _cursor, .*? FROM/, 'SELECT _cursor, … FROM')
    .replace(/_attempt IN \([^)]*\)/, '_attempt IN (…)')
    .replace(/toUInt64\('\d+'\)/g, 'toUInt64(…)')
    .replace(/ FORMAT Native$/, '');
}

/** Three queries that use the key, the filters of whole texts, and both: what they are compiled to, and what ClickHouse does with it. */
export async function explainQueries(bed: FarBed): Promise<readonly Explained[]> {
  const { requestId, remoteAddr } = bed.wanted;
  const { after, before } = bed.wantedHour;
  const queries = [
    `after=${after}&limit=100`,
    `request_id__exact=${requestId}`,
    `remote_addr__exact=${remoteAddr}&after=${after}&before=${before}`,
  ];
  const explained: Explained[] = [];
  for (const asked of queries) {
    // The last question is the one that found it.
    const statement = (await bed.questionsOf(() => answered(bed.far, asked))).at(-1)!;
    const text = Buffer.from(
      await bed.ask(`EXPLAIN indexes = 1 ${statement.replace(/ FORMAT Native$/, '')} FORMAT TSVRaw`),
    ).toString();
    explained.push({ asked, statement: shortened(statement), indexes: indexesOf(text) });
  }
  return explained;
}

/** The indexes of a plan: each has its type, perhaps a name, and its granules. */
function indexesOf(plan: string): ExplainedIndex[] {
  const indexes: ExplainedIndex[] = [];
  let name = '';
  // Lines of branches stand before what is said.
  for (const line of plan.split('\n').map((each) => each.replace(/^[│├└─ ]+/, ''))) {
    if (/^(Min-Max|MinMax|Partition|PrimaryKey|Skip)$/.test(line)) name = line;
    const named = /^Name: (.*)$/.exec(line)?.[1];
    if (named !== undefined) name = `${name} ${named}`;
    const [, granules, granulesBefore] = /^Granules: (\d+)\/(\d+)$/.exec(line) ?? [];
    if (granules !== undefined)
      indexes.push({ name, granules: Number(granules), granulesBefore: Number(granulesBefore) });
  }
  return indexes;
}

/** The same as lines of text. */
export function explainedText(all: readonly Explained[]): string {
  return all
    .map(({ asked, statement, indexes }) => {
      const lines = indexes.map(
        ({ name, granules, granulesBefore }) =>
          `  ${name.padEnd(36)} ${granules} of ${granulesBefore} granules`,
      );
      return [`GET …?${asked}`, statement, ...lines].join('\n');
    })
    .join('\n\n');
}
