/** Bounds of the HTTP side, each with its reason. Units come last in the names. */

/** Longest path and query string of a request: 100 filters with long values fit. A longer one is answered with 414. */
export const requestLineBytesMax = 16 * 1024;

/** Longest head of a request: its request line, and cookies of a shared domain. The libraries themselves answer a longer one with 431. */
export const headBytesMax = 32 * 1024;

/** Longest time for a TLS handshake, and for the head of a request. A client that sends too slowly must not hold a socket for ever. */
export const headTimeoutMs = 10_000;

/**
 * How long a connection that is to end is kept for what is still on its way: for a client that has closed its side, while nothing is sent to it; for
 * reading after a refusal, so that the client gets the answer before a reset; and for a follower's last event.
 */
export const farewellMs = 2_000;

/** Longest answer over HTTP/1.0, which has to be kept in memory until it is complete. */
export const wholeAnswerBytesMax = 1024 * 1024;

/**
 * Longest single write while a client is behind. When its socket becomes writable again, the operating system has taken more bytes than
 * this since the last write, so the bytes that uWebSockets.js keeps for the client do not grow. It must be at least the 16 KiB that
 * uWebSockets.js collects before it writes: the result of a shorter write would not tell whether the operating system took it.
 */
export const uwsBehindWriteBytesMax = 16 * 1024;

/**
 * An unfinished answer must write this often: uWebSockets.js closes a connection 8 to 12 s after the last write. A stream without new events
 * sends a comment, so that proxies and clients know too that it is alive.
 */
export const silenceMsMax = 5_000;

/**
 * Answers that may be under way for each slot of a query. An answer that waits for its client holds no slot, but it holds a piece of the
 * answer and what was read ahead for it.
 */
export const answersPerSlot = 4;

/** How long a query waits for a slot before it is refused. Running scans give theirs back whenever they wait for a client. */
export const admissionWaitMs = 1000;

/** The time of waiting for a client over which its rate is measured. */
export const clientRateWindowMs = 60_000;

/** Slow queries that are kept for showing, and parameters kept of each: 2 MB at most. */
export const slowQueriesMax = 100;
export const slowFiltersMax = 32;

/** Commits within this time are read together for followers. It is a small part of the second within which a record has to reach them. */
export const followGatherMs = 20;

/**
 * Followers that catch up and whose scans look for first records at the same time: so few that most of the processor is left to queries.
 * After their first records, scans are bounded by the turns of long answers.
 */
export const catchUpsMax = 8;

/**
 * Bytes of events that a group keeps for its slow clients: some seconds of 1000 records a second. A client that is farther behind is cut
 * off, and can continue from the id of its last event. A scan keeps as many for clients that catch up by it together, so that all of them go
 * on while one pauses for a moment; a client that is farther behind has to read the rest by itself.
 */
export const followKeptBytesMax = 4 * 1024 * 1024;

/** The same for all groups together. With this bound and the bytes on their way to clients, followers take less than 300 MB. */
export const followLogsBytesMax = 64 * 1024 * 1024;

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

/** How long, in all, a reading of very many new records waits for its followers to take them. Then the slow ones are cut off. */
export const followPatienceMs = 2_000;

/** How long a client is told to wait before it reconnects. */
export const followRetryMs = 1_000;

/** Bounds of the checks of access tokens, each with its reason. A unit comes last in the name. */

/**
 * Tokens of a data folder, revoked ones included: enough for one per program of a large company. All are read at the start and at
 * SIGHUP.
 */
export const tokensMax = 1000;

/** Agents that one token names. A client that needs more is given a token for all agents. */
export const agentsOfTokenMax = 100;

/** Characters of a token's name: it is one line of `token list`. */
export const tokenNameCharactersMax = 100;

/** Bytes of a token's file. The largest possible file has 14 KiB. */
export const tokenFileBytesMax = 32 * 1024;

/** Characters of an `Authorization` header; a longer one is treated as if it held no token. A token has 62. */
export const authorizationCharactersMax = 256;

/** Clients whose wrong tokens are counted. For one more, the client whose last failure is the oldest is forgotten. */
export const failingClientsMax = 4096;

/** Milliseconds without a wrong token after which a client's count begins again at 0. */
export const failuresForgottenMs = 10 * 60_000;

/** Wrong tokens of a client that are refused without a delay: a person may have pasted the wrong one. */
export const failuresAtOnce = 3;

/** Delay in milliseconds of the next refusal. It doubles with each further one, up to the maximum. */
export const failureDelayMs = 100;
export const failureDelayMsMax = 2000;

/**
 * Refusals that are delayed at the same time, of all clients and of one. Each holds a timer and a connection; one more gets a 429
 * at once.
 */
export const slowedAnswersMax = 256;
export const slowedAnswersOfClientMax = 8;

/** Values that a count returns where the request does not say how many. */
export const topDefault = 10;
