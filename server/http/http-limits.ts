/** Bounds of the HTTP side, each with its reason. Units come last in the names. */

/** Longest path and query string of a request: 100 filters with long values fit. A longer one is answered with 414. */
export const requestLineBytesMax = 16 * 1024;

/** Longest head of a request: its request line, and cookies of a shared domain. The libraries themselves answer a longer one with 431. */
export const headBytesMax = 32 * 1024;

/** Parsed queries that are kept for requests that repeat: those of a few dashboards fit. Longer request targets are not kept. */
export const knownQueriesMax = 256;
export const knownQueryCharactersMax = 1024;

/**
 * Longest answer that the main thread packs with gzip at once: a page of a hundred records fits, and takes half a millisecond. Packing on
 * another thread would take two round trips, one for the bytes and one for the end, and wait there for reads and syncs of files.
 */
export const packedAtOnceBytesMax = 64 * 1024;

/** Pipelined requests that wait on a connection for the answers before theirs. While there are so many, its socket is not read. */
export const pipelinedRequestsMax = 32;

/** Open connections on node:http. Each may hold a piece of an answer and pipelined requests. */
export const connectionsMax = 2000;

/** Longest time for a TLS handshake, and for the head of a request. A client that sends too slowly must not hold a socket for ever. */
export const headTimeoutMs = 10_000;

/** A connection without a request is closed after this time; uWebSockets.js does so after 8 to 12 s by itself. */
export const idleTimeoutMs = 5_000;

/** A client that has closed its side of the connection is treated as gone when nothing was sent to it for this long. */
export const halfClosedTimeoutMs = 2_000;

/** Longest answer over HTTP/1.0, which has to be kept in memory until it is complete. */
export const wholeAnswerBytesMax = 1024 * 1024;

/** After a refusal the socket is read for this long and up to this many bytes, so that the client gets the answer before a reset. */
export const lingerTimeoutMs = 1_000;
export const lingerBytesMax = 1024 * 1024;

/** Longest single write to uWebSockets.js, which copies what the operating system does not take. */
export const uwsWriteBytesMax = 64 * 1024;

/**
 * Longest single write while a client is behind. When its socket becomes writable again, the operating system has taken more bytes than
 * this since the last write, so the bytes that uWebSockets.js keeps for the client do not grow. It must be at least the 16 KiB that
 * uWebSockets.js collects before it writes: the result of a shorter write would not tell whether the operating system took it.
 */
export const uwsBehindWriteBytesMax = 16 * 1024;

/** An unfinished answer must write this often: uWebSockets.js closes a connection 8 to 12 s after the last write. */
export const uwsSilenceMsMax = 5_000;

/**
 * Answers that may be under way for each slot of a query. An answer that waits for its client holds no slot, but it holds a piece of the
 * answer and what was read ahead for it.
 */
export const answersPerSlot = 4;

/** How long a query waits for a slot before it is refused. Running scans give theirs back whenever they wait for a client. */
export const admissionWaitMs = 1000;

/** How often answers under way are checked, and the time of waiting for a client over which its rate is measured. */
export const answerWatchMs = 1000;
export const clientRateWindowMs = 60_000;

/** Slow queries that are kept for showing, parameters kept of each, and characters kept of each parameter: 2 MB at most. */
export const slowQueriesMax = 100;
export const slowFiltersMax = 32;
export const slowValueCharactersMax = 200;

/** Longest label of a metric that gives the reason why a line was rejected. */
export const reasonCharactersMax = 100;

/** Longest file with a certificate or a key: a chain of ten certificates has 20 KiB. */
export const pemBytesMax = 1024 * 1024;

/** A stream without new events sends a comment this often, so that proxies and clients know that it is alive. */
export const followCommentMs = 15_000;

/** Commits within this time are read together for followers. It is a small part of the second within which a record has to reach them. */
export const followGatherMs = 20;

/**
 * Followers that catch up and whose scans look for first records at the same time: so few that most of the processor is left to queries.
 * After their first records, scans are bounded by the turns of long answers.
 */
export const catchUpsMax = 8;

/**
 * Bytes of events that a group keeps for its slow clients: some seconds of 1000 records a second. A client that is farther behind is cut
 * off, and can continue from the id of its last event.
 */
export const followLogBytesMax = 4 * 1024 * 1024;

/** The same for all groups together. With this bound and the bytes on their way to clients, followers take less than 300 MB. */
export const followLogsBytesMax = 64 * 1024 * 1024;

/**
 * Bytes of events that a scan keeps for clients that catch up by it together: so many that all of them go on while one pauses for a moment. A
 * client that is farther behind has to read the rest by itself.
 */
export const followBacklogBytesMax = 4 * 1024 * 1024;

/**
 * How long clients may join such a scan after it has begun: about as long as a thousand clients that come back together need to connect. A
 * group keeps its new events for this long.
 */
export const followBacklogOpenMs = 500;

/** How long, in all, such a scan waits for its slow clients when it keeps that much. It delays the records of the others. */
export const followBacklogPatienceMs = 250;

/**
 * Clients that begin less than this number of records apart share a scan. Those that come back after a restart are apart by what was on its
 * way to them. Reading and leaving out these records takes some milliseconds.
 */
export const followNearRecords = 16 * 1024;

/** Bytes of events that are collected into one write to a follower. */
export const followWriteBytesMax = 64 * 1024;

/** How long, in all, a reading of very many new records waits for its followers to take them. Then the slow ones are cut off. */
export const followPatienceMs = 2_000;

/** How long a client may take to receive the last event before its connection is broken. */
export const followFarewellMs = 5_000;

/** How long a client is told to wait before it reconnects. */
export const followRetryMs = 1_000;
