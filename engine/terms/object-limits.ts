/** Objects of an object storage are fetched and kept in blocks of this size: a footer is in one or two, and each costs a file on our disk. */
export const objectBlockBytes = 64 * 1024;

/** Blocks that a thread keeps in memory: what is read in small pieces lies in a few. */
export const objectBlocksKept = 32;

/** What is kept of objects on our disk, unless configured otherwise. */
export const objectCacheBytesDefault = 4 * 1024 * 1024 * 1024;

/** Bytes of one request, each of which is in memory until it is on the disk; more gain nothing where several are under way. */
export const objectRequestBytesMax = 4 * 1024 * 1024;

/** What nobody asked for between two ranges is fetched too where it is no more than this: that takes less time than another request. */
export const objectGapBytesMax = 256 * 1024;

/** Requests for objects that are under way at once. */
export const objectRequestsMax = 16;

/** A connection to an object storage, and one request with its whole answer. */
export const objectConnectMsMax = 5000;
export const objectRequestMsMax = 30_000;

/** How often a request is made that fails in a way which may pass, and the pause before it is made again, which doubles. */
export const objectAttemptsMax = 4;
export const objectRetryMs = 200;

/** Blocks that are fetched ahead where a reading finds one missing, at most: twice as many each time. */
export const objectBlocksAheadMax = 64;

/** How often the same block may be missing in one reading: another process may remove it once or twice, a disk that keeps nothing always. */
export const objectBlockAttemptsMax = 3;

/** Pages that listing the objects of one archive takes, of a thousand keys each. */
export const objectPagesMax = 10_000;

/** A part of an object that is uploaded, and what is put in one piece at most: in `objectRequestMsMax` it goes over a line of 3 Mbit/s, and ten thousand may be parts of one object. */
export const objectPartBytes = 8 * 1024 * 1024;
