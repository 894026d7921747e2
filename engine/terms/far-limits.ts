// Limits of what is asked of other machines: a cluster, the writer of a reader, an object storage.

/**
 * Intended size of an answer, which is in memory as a whole. A cluster's is estimated from the bytes that were sent when the rows were shipped. The
 * writer, which answers its readers, has other work to do meanwhile.
 */
export const farAnswerBytes = 8 * 1024 * 1024;

/** Rows that the first question with filters may have to scan. Each further question scans `searchGrowth` times as many. */
export const farWindowRows = 1024 * 1024;

/** Units that one question names, with 20 digits each, or ranges of positions or of time that it counts. Bounds the length of the SQL text. */
export const farPartsMax = 1000;

/** In place of `farPartsMax` for questions to the writer on another machine, so that it gets at most eight questions of one query at once. */
export const farUnitsOfWriter = farPartsMax / 8;

/** Maximum age (ms) of a reader's state on another machine. What the state names is dropped in the cluster only after that. */
export const readerLagMsMax = 60_000;

/**
 * A query for the last matches searches backwards and keeps up to this many of them, and `heldBytesMax`. If there are more, only the position of the
 * first match is kept, and they are read again from there.
 */
export const farKeptRowsMax = 1024;

/** Timeout of a connection (ms). */
export const connectMsMax = 5000;

/**
 * Timeout of one question to a cluster, or of inserting one block, with its whole response, and for all replicas to receive a block (ms). A query's
 * own timeout applies too.
 */
export const farAskMsMax = 120_000;

/** Attempts of what fails temporarily, such as a request, and the pause (ms) before the second one, which doubles. */
export const attemptsMax = 4;
export const retryMs = 100;

/** Concurrent requests to one server. Each answer is in memory, or on its way to disk. */
export const serverRequestsMax = 16;

/** Block size in which objects are fetched and cached. A footer is in one or two blocks, and each block is a file on our disk. */
export const objectBlockBytes = 64 * 1024;

/** Blocks that a thread keeps in memory, for objects that are read in small pieces. */
export const objectBlocksKept = 32;

/** Size of the cache of blocks on our disk, unless configured otherwise. */
export const objectCacheBytesDefault = 4 * 1024 * 1024 * 1024;

/** Bytes of one request, and of blocks that are fetched ahead after a missing one. They are in memory until they are on disk. Larger requests are no faster when several run at once. */
export const objectRequestBytesMax = 4 * 1024 * 1024;

/** A gap of up to this many unwanted bytes between two ranges is fetched too, because that is faster than another request. */
export const objectGapBytesMax = 256 * 1024;

/** Timeout of one request for objects with its whole response (ms). */
export const objectRequestMsMax = 30_000;

/** Pages of a thousand keys in the listing of one archive's objects. */
export const objectPagesMax = 10_000;

/**
 * Size of a part of a multipart upload, and of an object that is put in one request. At 3 Mbit/s a part takes less than
 * `objectRequestMsMax`. S3 allows ten thousand parts per object.
 */
export const objectPartBytes = 8 * 1024 * 1024;
