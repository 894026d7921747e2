import { answered, type FarBed } from './far-bed.js';

/** The plan of a compiled query, as ClickHouse explains it. */
export interface Explained {
  /** The query string of the query. */
  readonly asked: string;
  readonly statement: string;
  /** The indexes that ClickHouse uses, in order, with the number of granules before and after each. */
  readonly indexes: readonly ExplainedIndex[];
}

/** An index, and the number of granules that it left of those before it. */
export interface ExplainedIndex {
  readonly name: string;
  readonly granules: number;
  readonly granulesBefore: number;
}

/** Shortens the parts of a statement that are long and not interesting: literals of positions and attempts, and the list of columns. */
function shortened(statement: string): string {
  return statement
    .replace(/SELECT _cursor, .*? FROM/, 'SELECT _cursor, … FROM')
    .replace(/_attempt IN \([^)]*\)/, '_attempt IN (…)')
    .replace(/toUInt64\('\d+'\)/g, 'toUInt64(…)')
    .replace(/ FORMAT Native$/, '');
}

/**
 * Explains three queries, which use the key, the filters of whole texts, and both: the statement that each is compiled to, and what
 * ClickHouse does with it.
 */
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
    // The last statement is the one that found the records.
    const statement = (await bed.questionsOf(() => answered(bed.far, asked))).at(-1)!;
    const text = Buffer.from(
      await bed.ask(`EXPLAIN indexes = 1 ${statement.replace(/ FORMAT Native$/, '')} FORMAT TSVRaw`),
    ).toString();
    explained.push({ asked, statement: shortened(statement), indexes: indexesOf(text) });
  }
  return explained;
}

/** Parses the indexes of a plan. Each has a type, perhaps a name, and its granules. */
function indexesOf(plan: string): ExplainedIndex[] {
  const indexes: ExplainedIndex[] = [];
  let name = '';
  // Lines begin with characters that draw the branches of the tree.
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

/** The explanations as text. */
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
