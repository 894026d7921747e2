/** Rows of one question to the cluster, and of its answer: as many as a row group has. */
export const farRowsMax = 65_536;

/** Intended size of an answer, estimated from the bytes that were sent when the rows were shipped. An answer is in memory as a whole. */
export const farAnswerBytes = 16 * 1024 * 1024;

/** The same for an answer of the writer to a reader. Smaller, because the writer has other work to do meanwhile. */
export const writerAnswerBytes = 8 * 1024 * 1024;

/** An answer of more bytes is cut off, and asked for again in smaller parts. */
export const farAnswerBytesMax = 64 * 1024 * 1024;

/** Rows that the first question with filters may have to scan. Each further question scans `farWindowGrowth` times as many. */
export const farWindowRows = 1024 * 1024;
export const farWindowGrowth = 8;

/** Units that one question names, with 20 digits each. Bounds the length of the SQL text. */
export const farUnitsMax = 500;

/** In place of `farUnitsMax` for questions to the writer on another machine, so that it gets at most eight questions of one query at once. */
export const farUnitsOfWriter = farUnitsMax / 8;

/** Maximum age (ms) of a reader's state on another machine. What the state names is dropped in the cluster only after that. */
export const readerLagMsMax = 60_000;

/** Limits what the writer tells a reader about one agent (200,000 units), and the list of agents. */
export const borderBytesMax = 64 * 1024 * 1024;

/**
 * A query for the last matches searches backwards and keeps up to this many of them, and these bytes. If there are more, only the position of the
 * first match is kept, and they are read again from there.
 */
export const farKeptRowsMax = 1024;
export const farKeptBytesMax = 32 * 1024 * 1024;

/** Timeout of a connection, and of one question with its whole answer (ms). The query's own timeout applies too. */
export const farConnectMsMax = 5000;
export const farAskMsMax = 60_000;

/** Timeout for inserting one block, and for all replicas to receive it; and how often that is checked (ms). */
export const farInsertMsMax = 120_000;
export const farReplicasMsMax = 120_000;
export const farReplicasPollMs = 250;

/** Rounds in which a question is put to all replicas of a shard, and the pause (ms) between them, which doubles. */
export const farRoundsMax = 3;
export const farRetryMs = 100;

/** Concurrent questions to one server. */
export const farConnectionsMax = 8;

/** Length to which a server's error message is truncated. */
export const farMessageMax = 300;

/** Ranges of positions, and of time, in one counting question, at some sixty bytes each. Bounds the length of the SQL text. */
export const farCountRangesMax = 1000;
export const farCountBucketsMax = 1000;
