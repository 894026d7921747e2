/**
 * What a command may read for one query before it begins threads. Measured: to begin two takes 130 ms of processor time, and decoding a
 * stored MiB 4 to 6. So a query that reads more is held up by less than two threads take to begin, and one that reads less never waits
 * for them. Filters of a row group are asked in 30 microseconds or so, and count as the bytes that are decoded in twice the time.
 */
export const bytesBeforeThreads = 16 * 1024 * 1024;
export const probedBytesOfRowGroup = 16 * 1024;
