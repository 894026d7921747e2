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

// Every limit of the engine, with its reason. The unit is the last word of a name.

/**
 * Maximum rows of a row group. A hot segment is sealed at this many, and becomes exactly one row group; a question to the cluster asks for at most as
 * many. With 32 Ki rows files are 2 % larger; with 128 Ki they are 1.6 % smaller, but the unit of scanning doubles.
 */
export const rowGroupRowsMax = 64 * 1024;

/**
 * Maximum decoded bytes of a row group, so that it always fits the memory that a query reserves, and of a hot segment, which becomes one. Compaction
 * holds compressed row groups of at most this many bytes at once, one of each segment.
 */
export const rowGroupBytesMax = 64 * 1024 * 1024;

/** Maximum entries of a dictionary, so that its codes fit 16 bits, which the scan kernels read. */
export const dictionaryEntriesMax = 64 * 1024;

/** Maximum row groups of a sealed segment, so that its footer stays small and rewriting it stays a short job. */
export const segmentRowGroupsMax = 64;

/** Memory of sealed hot rows that is kept for reuse, for all agents: as much as the largest possible hot segment takes, or two common ones. */
export const spareHotBytesMax = 96 * 1024 * 1024;

/**
 * One value of a string field. A longer line is rejected (and kept) before it gets here. A kept line fits too: it takes six bytes for each of its own
 * if JSON escapes them all, its reason and its place.
 */
export const valueBytesMax = 16 * 1024 * 1024;

/** One line of input. Longer ones are rejected and kept. */
export const lineBytesMax = 1024 * 1024;

/**
 * Sum of the texts from which the fields of one line are read: a thousand fields may each take the same line of a megabyte. A few common fields that
 * each take all of a longest line fit, and a batch stays below `hotBatchBytesMax`.
 */
export const fieldTextBytesMax = 32 * 1024 * 1024;

/** Nesting depth of one line of JSON. No log nests that deep, and programs that read a stored value may recurse. */
export const jsonDepthMax = 512;

/** Fields of one agent. Each is a column chunk in every row group. */
export const fieldsMax = 1000;

/** Strings up to this length get byte statistics in the footer. Longer ones would enlarge it and prune little. */
export const statisticsBytesMax = 256;

/** Decoded columns kept in memory: what 32-bit addresses reach, less `kernelScratchBytesMax` and as much again in reserve. */
export const poolBytesMax = 3.5 * 1024 * 1024 * 1024;

/** The same, unless configured otherwise, as a share of the machine's memory, or of what the process may use of it. */
export const poolMemoryShareDefault = 1 / 4;

/**
 * Free memory between columns that is too fragmented for the next one; decoding leaves gaps as large as its working memory. Beyond this share of the
 * limit, columns are evicted before the memory grows, so that the process takes little more than the limit.
 */
export const poolScatteredShare = 1 / 2;
export const poolScatteredBytesMin = 16 * 1024 * 1024;

/** Queries that wait for memory, or jobs of one query or load that no thread has taken. Each queues few, so more are a bug of the caller. */
export const waitingMax = 4096;

/**
 * Parsed queries that are kept for requests that repeat, and whole answers of one piece to them for each state, for others that ask the same: the
 * pages of a few dashboards, and of logs that many clients watch. 8 MiB at most.
 */
export const knownQueriesMax = 128;

/** Agents of one answer. Each needs a search of its own, and each record's cursor names a position of every one. */
export const agentsMax = 16;

/**
 * A piece of an answer that is passed to the caller: all the memory that a slow client keeps occupied. A page of a hundred records fits, and a socket
 * is written that much at a time. The main thread packs so much with gzip itself, in half a millisecond; packing on another thread would take two
 * round trips, one for the bytes and one for the end, and wait there for reads and syncs of files.
 */
export const answerBytesMax = 64 * 1024;

/** Approximate number of pieces that a thread writes in one job. Their memory is allocated together. */
export const cellsOfBlock = 16;

/** Range of a field of type `int` or `time`. */
export const int64Min = -(2n ** 63n);
export const int64Max = 2n ** 63n - 1n;

/** Filters in one query. Each takes a pass over a column. */
export const predicatesMax = 100;

/** Ordinals of a partition have 40 bits, from 1 on: a cursor is a partition and an ordinal in 64 bits. */
export const ordinalMax = 2 ** 40 - 1;

/** Partitions have 24 bits: hours since the epoch, up to the year 3883. */
export const partitionMax = 2 ** 24 - 1;

/**
 * Rows that one work keeps in memory besides the row group it writes: a load until it knows their order (in the sort window, and as sorted runs before
 * they are spilled to disk), a rewriting in its columns (more come from the heap), and a backward search in the cluster.
 */
export const heldBytesMax = 32 * 1024 * 1024;

/**
 * Memory that loads lend to threads: lines, columns that wait to be sorted, and encoded row groups. It holds some ten jobs of the largest common size
 * and the rows of two row groups. What does not fit is moved between threads instead.
 */
export const leasedBytesMax = 768 * 1024 * 1024;

/** Sorted runs, or segments, that are merged at once. More runs are first merged into fewer, so that their pages fit in memory together. */
export const mergedAtOnceMax = 64;

/**
 * Rows of a load that belong before rows already written. Up to this many get segments of their own, and each may split a run of positions, which
 * footers and the manifest list. Beyond it, everything is sorted before it is written again.
 */
export const lateRowsMax = 4096;

/**
 * Bytes of a file that are read, checked, searched or written at a time, so that a piece and its decompressed form stay in the nearest caches
 * meanwhile. Also a page of a spilled run: while runs are merged, `mergedAtOnceMax` pages are in memory, and as many again from which a row group was
 * gathered.
 */
export const filePieceBytes = 256 * 1024;

/** Rows of a page of a sorted run, which has at most `filePieceBytes` if the rows are long. */
export const sortedPageRowsMax = 4096;

/**
 * Row groups that are encoded while the next one is merged. One thread merges, so more would not speed it up, and each takes tens of megabytes
 * besides the pages that are merged.
 */
export const mergingDepthMax = 1;

/**
 * Segments that a load completes at once. Each waits for the disk several times, and Node does at most four calls of the file system at
 * once.
 */
export const finishingDepthMax = 4;

/** All rejected lines of an agent that are kept, unless configured otherwise. Few are needed to correct a pattern. */
export const rejectedBytesMaxDefault = 256 * 1024 * 1024;

/** How long (ms) a loader may block other commits between reserving its ordinals and publishing. */
export const reservationMsMax = 120_000;

/**
 * What describes files and is read as a whole: a manifest (100 000 segments stay far below it), a list of attached files (those whose rows are in no
 * order of time have megabytes of placements each), the footer of a segment that no manifest describes (64 row groups of 1000 fields stay below it)
 * or of a foreign file. A damaged size cannot exhaust the memory.
 */
export const metadataBytesMax = 256 * 1024 * 1024;

/**
 * Runs of positions that a manifest keeps of loads: a year of two logs that are loaded daily fits, in about a megabyte. Each manifest is rewritten as
 * a whole. Beyond it the oldest loads are forgotten.
 */
export const loadRunsMax = 32_768;

/** Number of runs that take as many bytes as the manifest's entry of a loaded source. */
export const loadSourceRuns = 16;

/** One encoded batch of a hot file, or on its way to the writer. It is read and checked as a whole. */
export const hotBatchBytesMax = 256 * 1024 * 1024;

/** A hot file. It is sealed at `rowGroupBytesMax`, which its last batch may exceed. It is read as a whole after a crash. */
export const hotFileBytesMax = rowGroupBytesMax + hotBatchBytesMax;

/**
 * What another process or machine says in one message, which is in memory as a whole: a description, what the writer tells a reader about one agent
 * (200,000 units), or rows. An answer of the cluster with more is cut off, and asked for again in smaller parts.
 */
export const messageBytesMax = 64 * 1024 * 1024;

/** Unanswered requests on one connection: of a process to the writer, or pipelined over HTTP. Its socket is not read until one is answered. */
export const unansweredMax = 64;

/** Open connections to the writer, and on node:http. Each may hold unanswered requests, and over HTTP a piece of an answer. */
export const connectionsMax = 2000;

/** A file or a connection that nobody has used for this long (ms) is closed, and a guarded thread without a job ends. */
export const idleMs = 5000;

/** Text of others that is shown in a message, a label or a list. The rest is cut off. */
export const shownCharactersMax = 200;

/**
 * A decompressed page of a sealed segment: a row group's bytes, plus one value that exceeded its limit, plus the overhead of the encoding. A larger
 * size is damage, and is not allocated.
 */
export const pageBytesMax = rowGroupBytesMax + 2 * valueBytesMax + 16 * rowGroupRowsMax;

/**
 * Memory of a thread to which kernels copy their arguments. Two pages of the largest size fit, compressed and decompressed. A call that needs more
 * fails.
 */
export const kernelScratchBytesMax = 256 * 1024 * 1024;

/** How late (ms) a live record may be before it counts as history, unless configured otherwise. */
export const graceMsDefault = 3_600_000;

/** Maximum duration (ms) of a query, unless configured otherwise. Removed files are kept that long for other processes. */
export const queryTimeoutMsDefault = 60_000;

/** How often (ms) the writer checks for a day that has ended and for files to remove, a waiting server for the lock, and a server its answers. */
export const maintenanceIntervalMs = 1000;

/**
 * Maximum duration (ms) of such a check, which counts as hung beyond it. It waits for the commits of every agent, and so for a load that holds its
 * ordinals (`reservationMsMax`), or for a seal on a slow disk.
 */
export const upkeepMsMax = 5 * 60_000;

/** A configuration file or a certificate (a chain of ten has 20 KiB), read as a whole. A longer one is a log or an archive named by mistake. */
export const configBytesMax = 1024 * 1024;

/**
 * Runs of one exported file, whose footer holds them (scattered matches have a run each; further runs begin another file), or of one import. Each gap
 * in the cursors of an import ends a run, and the manifest, which is rewritten with each commit, takes some 30 bytes per run.
 */
export const runsOfFileMax = 256 * 1024;

/** An answer that takes this many rows of a row group does not cache its columns: writing the rows takes longer than decoding. */
export const bulkRowsMin = 16 * 1024;

/**
 * An answer writes this many rows on its own thread before others help, and only leaves at least as many rows to them: handing rows over
 * takes tens of microseconds, writing a row a fraction of one.
 */
export const inlineRowsMax = 512;

/** Jobs of one answer whose lines wait for the client. As many again are being written. */
export const lineJobsMax = 8;

/** The jobs of all answers together, which bounds how many answers have a turn and the memory of their lines. */
export const lineJobsOfAllMax = 32;

/**
 * How long (ms) an answer keeps its turn while others wait: long enough to write megabytes, so that the columns of a row group are decoded once for
 * many lines. It keeps it no longer while its client reads nothing, which a client that keeps pace does not reach.
 */
export const turnMs = 150;

/** Answers that keep their memory while their clients are slow: a megabyte each, if a search has found rows in many row groups. */
export const idleScansMax = 64;

/**
 * Strings in memory that a query searches on the thread that answers: it takes less than a millisecond, about as long as handing them over. Beyond
 * these, other threads search. Numbers and dictionary codes count an eighth, because they are compared faster.
 */
export const inlineFilterBytesMax = 8 * 1024 * 1024;

/** A column of strings of at least this many bytes is streamed on a thread, and not kept, the first time it is searched. */
export const streamedBytesMin = 1024 * 1024;

/** Worker threads, unless configured otherwise. With more of them, the work that only one thread can do is the bottleneck. */
export const workersDefaultMax = 8;

/** Worker threads of one process. Each may hold a decoded and an encoded row group. */
export const workersMax = 64;

/** How long (ms) jobs may take together that a thread is sent in one message: it takes no other job meanwhile, and none of them can be dropped. */
export const batchMs = 2;

/**
 * Row groups whose filters are asked in one job: at least this many if there are, because a probe takes microseconds and a job tens of them. And at
 * most, because other queries wait for a job, which then takes some milliseconds.
 */
export const probesOfJobMin = 64;
export const probesOfJobMax = 2048;

/** Memory for what filters have said of values that were asked for. It is a byte for each row group and some hundred for each segment. */
export const rulingsKnownBytesMax = 32 * 1024 * 1024;

/** Memory for whole value filters: those of one field take some two bytes for each record. Segments that are asked after that read theirs each time. */
export const wholeFiltersBytesMax = 128 * 1024 * 1024;

/**
 * Files that a worker thread keeps open: those of a year of days, because opening a file takes longer than reading from it. Far below the default
 * limit of a process.
 */
export const openFilesMax = 512;

/**
 * How many times as much a search goes through with its next question, so that a rare match takes few questions and a frequent one little work.
 */
export const searchGrowth = 8;

/**
 * Row groups whose filters a scan asks about at once: one at first, which suffices for many queries, then `searchGrowth` times the number already passed; for a whole
 * value then as many as possible.
 * Asking takes a microsecond or some per row group, a round trip to the threads about a hundred.
 */
export const probesAheadMax = 8192;

/** Row groups that a scan prepares ahead of the one whose rows it takes. Each one that waits holds at most a bitmap. */
export const rowGroupsAheadMax = 64;

/** Smaller row groups, and files, are processed on the calling thread, because starting another one would take longer. */
export const workerRowsMin = 4096;
export const workerFileBytesMin = 2 * 1024 * 1024;

/** Larger files are decoded in larger pieces: they have enough of them for all threads, and each piece takes a round trip. */
export const largeFileBytesMin = 64 * 1024 * 1024;

/**
 * Age (ms) of a day at which its segments get ZSTD, unless configured otherwise. Repeated queries mostly read recent days, and LZ4 decodes several
 * times as fast. Older segments are rarely read and become a third smaller.
 */
export const zstdAfterMsDefault = 7 * 86_400_000;

/** Smaller segments are not recompressed with age, because ZSTD would save only a few blocks of the file system. */
export const zstdBytesMin = 64 * 1024;

/** Segments below a row group that a day keeps. If there are more, they are merged, which rewrites at most a few row groups. */
export const smallSegmentsMax = 2;

/**
 * Larger segments of a day are merged when there are this many of similar size. So a record is rewritten once for each factor of this by which its
 * segment grows: at most twice before a segment is full.
 */
export const segmentFanIn = 8;

/** Share of one thread's time, and so of the disk's, that background compaction takes at most. */
export const backgroundShare = 0.5;

/** How long (ms) an agent is skipped after its background compaction failed: a full disk does not recover by retrying. */
export const backgroundRetryMs = 60_000;

/**
 * Between two checks, the reference time of retention advances by as much as has passed: an hour, or a weekend without records. If records are
 * overdue by more than this (ms), the time has leapt, for example because of a wrong clock, and they are kept until somebody has seen it.
 */
export const retentionLeapMsMax = 7 * 24 * 3_600_000;

/** With less free disk space (bytes) the next commit is likely to fail: a commit of a busy log and its manifest take a few megabytes. */
export const diskFreeBytesMin = 16 * 1024 * 1024;

/**
 * With a smaller share of the disk free, a stricter retention does not wait: a full disk stops the collection of all agents, which is worse than
 * removing records a day early.
 */
export const diskFreeShareMin = 0.1;

/**
 * Records removed by retention that still take space in files, as a share of the live ones. Beyond it, the background rewrites the segments with most
 * of them, so that the disk never holds more than this in excess.
 */
export const retiredShareMax = 1 / 6;

/** The header of a segment (1000 fields with names of a hundred characters stay below it), or of a page of a foreign file with long bounds. */
export const headerBytesMax = 1024 * 1024;

/** Runs with which the encoder of a segment's header starts before it drops some to fit. More never fit. */
export const segmentHeaderRunsMax = 4096;

/**
 * A rebuilt manifest continues at the next multiple of this above every known ordinal: no hour can have had more records since (that would be more
 * than a million a second), and there is room for 256 of these steps.
 */
export const repairOrdinalStep = 2 ** 32;

/** Columns of a foreign file, including nested ones. An agent takes a thousand of them at most. */
export const foreignColumnsMax = 10_000;

/** Column chunks of a foreign file, or spans of an attached one (65 thousand million rows), at some hundred bytes of memory each. */
export const foreignPartsMax = 1_000_000;

/** Values of a page of a foreign file, including those of lists and missing ones. A page of nulls encodes all of them in a few bytes. */
export const foreignPageValuesMax = 16 * 1024 * 1024;

/** Decoded bytes of one column of a span of a foreign file. */
export const foreignSpanBytesMax = 256 * 1024 * 1024;

/**
 * Bytes of a foreign file that are taken along with those that are wanted: decoded ones of neighbouring spans, and the rest of a column chunk that is
 * read at once. Most chunks are smaller, and each thread reads one.
 */
export const foreignAtOnceBytesMax = 64 * 1024 * 1024;

/** Bytes of all columns of a span to be imported. It is in memory as a whole, while the next one is read. */
export const importSpanBytesMax = 512 * 1024 * 1024;

/** Footers of foreign files that a thread keeps, because the columns of a file are read row group by row group. */
export const foreignFootersMax = 4;

/** Buffers of an Arrow file whose first bytes are part of its hash. Reading them takes a few microseconds each. */
export const foreignHashedBuffersMax = 16 * 1024;

/**
 * How long (ms) a thread may take for one column of a row group of a foreign file, or for a footer; the largest common ones take seconds. And its
 * heap: the text of a nested value takes several times its bytes.
 */
export const guardedMsMax = 30_000;
export const guardedHeapMb = 384;

/** Attached files of one list, which is rewritten when one of them changes, with some hundred bytes for each. */
export const attachedFilesOfListMax = 256;

/** Tables of the pages of column chunks that are kept for an attached file. */
export const attachedPageTablesMax = 4096;

/** Column chunks of attached files whose descriptions are kept in memory, at some hundred bytes each. */
export const describedChunksMax = 200_000;

/** Pages of a column chunk of a foreign file. Common pages have at least 8 KiB, and a chunk rarely more than a gigabyte. */
export const foreignPagesMax = 256 * 1024;

/** Placements of an agent's attached files: some 18 million runs, at some sixty bytes of memory each. 10⁸ rows scattered over a year fit. */
export const attachedPlacementsBytesMax = 48 * 1024 * 1024;

/** Times with calendar dates: the years 1 to 9999. Counts have one bucket for all times before, and one for all after. */
export const calendarFromMs = -62_135_596_800_000;
export const calendarEndMs = 253_402_300_800_000;

/** Time buckets with records in one count: more than a screen shows, and a year of hours fits. */
export const countBucketsMax = 10_000;

/** Most frequent values in one count. */
export const countTopMax = 1000;

/** Counts by bucket and value in one answer, which then has megabytes. */
export const countCellsMax = 1024 * 1024;

/**
 * The same for one row group on a thread: half a megabyte. If there are more, only the most frequent values are counted by bucket, in a second pass.
 */
export const countPairsOfRowGroupMax = 128 * 1024;

/** Distinct values in a count, and the bytes of their text. The users and addresses of a large site fit; ids do not. */
export const countValuesMax = 2 * 1024 * 1024;
export const countTextBytesMax = 128 * 1024 * 1024;

/** Memory for the values of all counts of the process: two of the largest while they grow, or many common ones. */
export const countMemoryBytesMax = 768 * 1024 * 1024;

/**
 * Bytes of columns in memory that a count scans on the thread that answers: ten million times, in about ten milliseconds. Two threads that have to be
 * woken and given each row group are no faster.
 */
export const countInlineBytesMax = 128 * 1024 * 1024;

/** Memory lent to a thread while it has jobs, for the arguments of its kernels: a dictionary of a row group and its counts. */
export const threadScratchBytes = 4 * 1024 * 1024;

/**
 * If fewer than one in this many rows is counted, or if a row group has more text than this, strings are looked up row by row instead of being
 * numbered first.
 */
export const countRowsForOneMax = 8;
export const countNumberedBytesMax = 8 * 1024 * 1024;

/**
 * How often (ms) followers check the state of a writer in another process, and shipping that of the replicas: a small part of the second that a record
 * may take.
 */
export const pollMs = 200;

/**
 * Bytes that a command reads for one query before it starts threads. Measured: starting two threads takes 130 ms of processor time, and
 * decoding a stored MiB takes 4 to 6 ms. So a query that reads more is delayed by less than the start of two threads takes, and one that
 * reads less never waits for them. Asking the filters of a row group takes about 30 µs, and counts as `probedBytesOfRowGroup` bytes, which
 * take twice as long to decode.
 */
export const bytesBeforeThreads = 16 * 1024 * 1024;
export const probedBytesOfRowGroup = 16 * 1024;
