/**
 * Bytes that a command reads for one query before it starts threads. Measured: starting two threads takes 130 ms of processor time, and
 * decoding a stored MiB takes 4 to 6 ms. So a query that reads more is delayed by less than the start of two threads takes, and one that
 * reads less never waits for them. Asking the filters of a row group takes about 30 µs, and counts as `probedBytesOfRowGroup` bytes, which
 * take twice as long to decode.
 */
export const bytesBeforeThreads = 16 * 1024 * 1024;
export const probedBytesOfRowGroup = 16 * 1024;
