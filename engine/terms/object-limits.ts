/** Block size in which objects are fetched and cached. A footer is in one or two blocks, and each block is a file on our disk. */
export const objectBlockBytes = 64 * 1024;

/** Blocks that a thread keeps in memory, for objects that are read in small pieces. */
export const objectBlocksKept = 32;

/** Size of the cache of blocks on our disk, unless configured otherwise. */
export const objectCacheBytesDefault = 4 * 1024 * 1024 * 1024;

/** Bytes of one request. They are in memory until they are on disk. Larger requests are no faster when several run at once. */
export const objectRequestBytesMax = 4 * 1024 * 1024;

/** A gap of up to this many unwanted bytes between two ranges is fetched too, because that is faster than another request. */
export const objectGapBytesMax = 256 * 1024;

/** Concurrent requests for objects. */
export const objectRequestsMax = 16;

/** Timeout of a connection to an object storage, and of one request with its whole response (ms). */
export const objectConnectMsMax = 5000;
export const objectRequestMsMax = 30_000;

/** Attempts of a request that fails temporarily, and the pause (ms) before the second one, which doubles. */
export const objectAttemptsMax = 4;
export const objectRetryMs = 200;

/** Maximum number of blocks that are fetched ahead after a missing one. The number doubles from 1 each time. */
export const objectBlocksAheadMax = 64;

/** How often one block may be missing in one reading. Another process may remove it once or twice; a disk that keeps nothing loses it always. */
export const objectBlockAttemptsMax = 3;

/** Pages of a thousand keys in the listing of one archive's objects. */
export const objectPagesMax = 10_000;

/**
 * Size of a part of a multipart upload, and of an object that is put in one request. At 3 Mbit/s a part takes less than
 * `objectRequestMsMax`. S3 allows ten thousand parts per object.
 */
export const objectPartBytes = 8 * 1024 * 1024;
