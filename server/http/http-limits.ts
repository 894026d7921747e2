/** Bounds of the HTTP side, each with its reason. Units come last in the names. */

/** Path and query string of a request: 100 filters with long values fit. Beyond it the answer is 414. */
export const requestLineBytesMax = 16 * 1024;

/** A whole head: that, and cookies of a shared domain besides. The libraries refuse longer ones by themselves, with 431. */
export const headBytesMax = 32 * 1024;

/** Queries that are kept as they were understood; those of a few dashboards fit. Longer query strings are not. */
export const knownQueriesMax = 256;
export const knownQueryCharactersMax = 1024;

/**
 * An answer that is packed at once, by the thread that has it: a page of a hundred records fits, and takes half a millisecond. Handed to
 * another thread and back, once for its bytes and once for its end, it would wait there behind what reads and syncs files.
 */
export const packedAtOnceBytesMax = 64 * 1024;

/** Requests that wait on a connection for the answer before theirs (pipelining); beyond them its socket is not read. */
export const pipelinedRequestsMax = 32;

/** Connections at once on node:http. Each may hold a piece of an answer and what was asked ahead. */
export const connectionsMax = 2000;

/** A head that has begun, and before it what TLS agrees on, must be complete in this time, or the connection is closed: who dribbles holds no socket for ever. */
export const headTimeoutMs = 10_000;

/** A connection without a request is closed after this time; uWebSockets.js does so after 8 to 12 s by itself. */
export const idleTimeoutMs = 5_000;

/** A client that has closed its side of the connection has gone, where for this long there was nothing to send to it. */
export const halfClosedTimeoutMs = 2_000;

/** A whole answer that HTTP/1.0 is given, which has to be kept until it is complete. */
export const wholeAnswerBytesMax = 1024 * 1024;

/** After a refusal we read on, for so long and so much, so that the client gets to read why before a reset reaches it. */
export const lingerTimeoutMs = 1_000;
export const lingerBytesMax = 1024 * 1024;

/** One write to uWebSockets.js, which copies what the kernel does not take. */
export const uwsWriteBytesMax = 64 * 1024;

/**
 * The same while a client is behind. That its socket is writable again means that the kernel has taken more than this since: so what
 * uWebSockets.js keeps for the client does not grow. It must not be less than the 16 KiB that uWebSockets.js gathers before it writes,
 * or the answer to a write would not be the kernel's.
 */
export const uwsBehindWriteBytesMax = 16 * 1024;

/** uWebSockets.js closes a connection 8 to 12 s behind the last write of an answer that goes on. */
export const uwsSilenceMsMax = 5_000;

/**
 * Answers under way for each slot of a query. Those whose clients take their time hold no slot, but each holds a piece of its answer and
 * what was read ahead for it.
 */
export const answersPerSlot = 4;

/** A query waits so long for a slot before it is refused: scans that run give theirs back whenever they wait for a client. */
export const admissionWaitMs = 1000;

/** How often answers under way are looked at, and over how much waiting for its client the rate of one is measured. */
export const answerWatchMs = 1000;
export const clientRateWindowMs = 60_000;

/** Slow queries that are kept to be shown, and of each so many parameters and of each of those so many characters: 2 MB at the most. */
export const slowQueriesMax = 100;
export const slowFiltersMax = 32;
export const slowValueCharactersMax = 200;

/** A reason why a line is no record, as the label of a metric. */
export const reasonCharactersMax = 100;

/** A file with a certificate or a key: a chain of ten has 20 KiB. */
export const pemBytesMax = 1024 * 1024;

/** A stream that has nothing to say says so this often, so that proxies and clients know that it lives. */
export const followCommentMs = 15_000;

/** Commits of this time are read together for those who follow: a small part of the second that a record may take. */
export const followGatherMs = 20;

/**
 * Scans that look for the first records of those who catch up, at once: they leave the most of the processor to queries. Longer ones take turns,
 * as answers do, and are not counted while they wait for theirs.
 */
export const catchUpsMax = 8;

/**
 * Events that a group of followers keeps for those of its clients that are slow: some seconds of 1000 records a second. A client that is
 * farther behind is cut off, and goes on by the id of its last event.
 */
export const followLogBytesMax = 4 * 1024 * 1024;

/** The same for all groups together: with it, and what is on its way to clients, followers take less than 300 MB. */
export const followLogsBytesMax = 64 * 1024 * 1024;

/**
 * What clients that begin at the same place are given of one scan: a screen of records, or the minutes since a restart. A group keeps it while
 * some of its clients wait to begin; longer answers are read for each client at its own pace.
 */
export const followSharedBytesMax = 256 * 1024;

/** Places whose answers a group keeps for that: after a restart, clients that had come equally far stand at few of them. */
export const followSharedMax = 8;

/** What a follower is handed at once. */
export const followWriteBytesMax = 64 * 1024;

/** How long a reading of very many new records waits in all for its followers to take them, before those that are slow are cut off. */
export const followPatienceMs = 2_000;

/** How long a client that is cut off may take to be told so. */
export const followFarewellMs = 5_000;

/** What a client is told to wait before it connects again. */
export const followRetryMs = 1_000;
