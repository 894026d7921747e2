/** Bounds of the HTTP side, each with its reason. Units come last in the names. */

/** Longest request line: 100 filters with long values fit. Beyond it the answer is 414. */
export const requestLineBytesMax = 16 * 1024;

/** All header lines together: cookies of a shared domain fit. Beyond it the answer is 431. */
export const headersBytesMax = 16 * 1024;

/** Header lines of one request; browsers send about 20. Beyond it the answer is 431. */
export const headersMax = 100;

/** Bytes that a client may send ahead while it is being answered (pipelining); beyond them its socket is not read. */
export const pipelinedBytesMax = 64 * 1024;

/** A head that is kept with its connection, to know it again: those of browsers are shorter. */
export const keptHeadBytesMax = 4 * 1024;

/** Queries that are kept as they were understood; those of a few dashboards fit. Longer query strings are not. */
export const knownQueriesMax = 256;
export const knownQueryCharactersMax = 1024;

/**
 * An answer that is packed at once, by the thread that has it: a page of a hundred records fits, and takes half a millisecond. Handed to
 * another thread and back, once for its bytes and once for its end, it would wait there behind what reads and syncs files.
 */
export const packedAtOnceBytesMax = 64 * 1024;

/** The same bound where requests are counted: node:http parses ahead what one packet holds. */
export const pipelinedRequestsMax = 32;

/** Connections at once. Each may hold a piece of an answer and what was asked ahead, and behind the gate two descriptors; more are closed at once. */
export const connectionsMax = 2000;

/** A head that has begun must be complete in this time, or the connection is closed: who dribbles holds no socket for ever. */
export const headTimeoutMs = 10_000;

/** A connection without a request is closed after this time; uWebSockets.js would do so after 8 to 12 s by itself. */
export const idleTimeoutMs = 5_000;

/** How often the connections on node:net are looked through for those: a timer for each would cost more than the request. */
export const sweepIntervalMs = 500;

/** A client that takes not one byte of its answer for this long is gone. A slow one that takes a little is not. */
export const stallTimeoutMs = 120_000;

/** After a refusal we read on, for so long and so much, so that the client gets to read why before a reset reaches it. */
export const lingerTimeoutMs = 1_000;
export const lingerBytesMax = 1024 * 1024;

/** One write to a socket, and what may be under way to it besides: the pace of a slow client reaches the scan through it. */
export const socketWriteBytesMax = 64 * 1024;
