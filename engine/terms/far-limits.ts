/** Rows of one question to the cluster, and so of its answer: those of a row group. */
export const farRowsMax = 65_536;

/** Bytes that an answer is meant to have, by what rows of the unit took when they were shipped. It is in memory as a whole. */
export const farAnswerBytes = 16 * 1024 * 1024;

/** The same of an answer of the writer to a reader, which the writer makes beside everything else. */
export const writerAnswerBytes = 8 * 1024 * 1024;

/** Bytes of an answer from which on it is broken off, and asked for again in smaller parts. */
export const farAnswerBytesMax = 64 * 1024 * 1024;

/** Rows that the first question with filters may have to look at; each further one looks at as many times more. */
export const farWindowRows = 1024 * 1024;
export const farWindowGrowth = 8;

/** Units that one question names: 20 digits each, so that the text of the question stays short. */
export const farUnitsMax = 500;

/** As so many units counts what is asked of the writer on another machine, so that it gets at most eight questions of one query at once. */
export const farUnitsOfWriter = farUnitsMax / 8;

/** How old what a reader on another machine knows may be, at most: what it may still ask for is dropped in the cluster after that. */
export const readerLagMsMax = 60_000;

/** What the writer tells a reader of one agent: 200,000 units. And names of agents that it serves. */
export const borderBytesMax = 64 * 1024 * 1024;

/** Matches of an answer from its end that are kept as they come, and their bytes. Of more, only where they begin is kept. */
export const farKeptRowsMax = 1024;
export const farKeptBytesMax = 32 * 1024 * 1024;

/** A connection, and one question with its whole answer, beside what the query itself may take. */
export const farConnectMsMax = 5000;
export const farAskMsMax = 60_000;

/** An insertion of one block, and how long all replicas together may take to have it. */
export const farInsertMsMax = 120_000;
export const farReplicasMsMax = 120_000;
export const farReplicasPollMs = 250;

/** How often one question is put to all replicas of a shard before it has failed, and the pause in between, which doubles. */
export const farRoundsMax = 3;
export const farRetryMs = 100;

/** Questions to one server that are under way at once. */
export const farConnectionsMax = 8;

/** What a server says of a failure is shortened to this. */
export const farMessageMax = 300;

/** Ranges of positions, and of time, that one question names when rows are counted: some sixty bytes each, so that its text stays short. */
export const farCountRangesMax = 1000;
export const farCountBucketsMax = 1000;
