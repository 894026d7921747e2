/**
 * Every bound of the engine, with its reason. Units come last in the names.
 */

/** A row group ends at this many rows: 32 Ki costs 2 % more disk, 128 Ki gains 1.6 % and doubles the scan unit. */
export const rowGroupRowsMax = 64 * 1024;

/** …or at this many decoded bytes, so that one row group always fits the memory a query reserves. */
export const rowGroupBytesMax = 64 * 1024 * 1024;

/** A dictionary ends here: its codes then fit 16 bits, which is what the scan kernels read. */
export const dictionaryEntriesMax = 64 * 1024;

/** A sealed segment ends at this many row groups: its footer stays small, and a rewrite stays a short job. */
export const segmentRowGroupsMax = 64;

/** A hot segment is sealed at this many rows or bytes: it becomes exactly one row group. */
export const hotRowsMax = rowGroupRowsMax;
export const hotBytesMax = rowGroupBytesMax;

/** Memory of sealed hot rows that is kept for the next ones, of all agents: what one that is as large as can be takes, or two common ones. */
export const spareHotBytesMax = 96 * 1024 * 1024;

/** One value of a string field; a longer line is rejected (and kept) before it gets here. */
export const valueBytesMax = 16 * 1024 * 1024;

/** One line of input; longer ones are rejected and kept. */
export const lineBytesMax = 1024 * 1024;

/**
 * Texts that the fields of one line are read from, together: a thousand fields may take the same line of a megabyte. A few usual ones that
 * take all of a longest line fit, and a batch stays below `hotBatchBytesMax` with them.
 */
export const fieldTextBytesMax = 32 * 1024 * 1024;

/** Brackets open at once in one line of JSON: no log nests that deep, and programs that read a stored value may recurse. */
export const jsonDepthMax = 512;

/** Fields of one agent: each is a column chunk in every row group. */
export const fieldsMax = 1000;

/** Strings up to this length get byte statistics in the footer; longer ones would bloat it and prune little. */
export const statisticsBytesMax = 256;

/** Decoded columns kept in memory, at most: what 32-bit addresses reach, less `kernelScratchBytesMax` and as much again to spare. */
export const poolBytesMax = 3.5 * 1024 * 1024 * 1024;

/** …and unless configured otherwise, this share of the machine's memory, or of what the process may use of it. */
export const poolMemoryShareDefault = 1 / 4;

/**
 * What lies free between columns, where none of it is large enough for the next: decoding leaves as much as it needed besides. Beyond this
 * share of the bound columns go before the memory grows, so that the process takes little more than the bound.
 */
export const poolScatteredShare = 1 / 2;
export const poolScatteredBytesMin = 16 * 1024 * 1024;

/** Queries that wait for memory of decoded columns. More than a server runs at once; a bound for who embeds the engine. */
export const poolWaitersMax = 1000;

/** Rows of an answer that is looked for and written in one go, where all of it is in memory (`scan/write/page.ts`): a tenth of a millisecond. */
export const pageRowsMax = 256;

/** Pages that are kept until the turn of the event loop ends, for other requests for the same page in that turn: a few logs that many clients look at. */
export const turnPagesMax = 4;

/**
 * A piece of an answer handed to the caller at once: all that a client which takes its time keeps of the memory. A page of a hundred records
 * fits, and a socket is given as much at a time.
 */
export const answerBytesMax = 64 * 1024;

/** Pieces that a thread writes in one job, about. Their memory is had together. */
export const cellsOfBlock = 16;

/** What a field of type `int` or `time` can hold. */
export const int64Min = -(2n ** 63n);
export const int64Max = 2n ** 63n - 1n;

/** Filters in one query: each costs a pass over a column. */
export const predicatesMax = 100;

/** Ordinals of a partition have 40 bits, from 1 on (`semantics.md`, "A cursor is a position"). */
export const ordinalMax = 2 ** 40 - 1;

/** Partitions have 24 bits: hours since the epoch, up to the year 3883. */
export const partitionMax = 2 ** 24 - 1;

/**
 * Rows that loading holds in memory until it knows their order: those that came last, and sorted runs before they are put
 * aside on disk.
 */
export const sortMemoryBytesMax = 32 * 1024 * 1024;

/**
 * Memory that loads lend to threads: lines, columns that wait for their place in time, and what row groups are encoded in. It holds some
 * ten jobs of the largest usual size and the rows of two row groups; what does not fit is moved between threads instead.
 */
export const leasedBytesMax = 768 * 1024 * 1024;

/** Sorted runs merged at once; more are first merged into fewer, so that their pages fit in memory together. */
export const sortRunsMergedMax = 64;

/**
 * Rows of a load that belong before what it has written already. Up to this many get segments of their own, and each may cut
 * a run of positions in two, which footers and the manifest list; beyond it, everything is sorted before it is written again.
 */
export const lateRowsMax = 4096;

/**
 * A page of a run put aside, in bytes and rows: `sortRunsMergedMax` of them are in memory while runs are merged, and as many
 * again that a row group was gathered from.
 */
export const sortedPageBytes = 256 * 1024;
export const sortedPageRowsMax = 4096;

/**
 * Row groups encoded while the next one is merged: merging is one thread's work, which more of them would not speed up, and
 * each takes tens of megabytes beside the pages that are merged.
 */
export const mergingDepthMax = 1;

/** A rejected line that waits in memory to be written beside the records it came with. */
export const rejectedBufferBytesMax = 1024 * 1024;

/** What a rejected line takes in its file: six bytes for each of its own where JSON escapes them all, its reason and its place. */
export const rejectedEntryBytesMax = 8 * 1024 * 1024;

/** What the rejected lines of an agent that are kept may take, unless configured otherwise: lines that one reads to mend a pattern are few. */
export const rejectedBytesMaxDefault = 256 * 1024 * 1024;

/** How long a loader may hold back the commits of others between taking its ordinals and publishing. */
export const reservationMsMax = 120_000;

/** A manifest in memory and on disk: 100 000 segments stay far below it, and a damaged size can't take the memory. */
export const manifestBytesMax = 256 * 1024 * 1024;

/**
 * What a manifest keeps of what loads gave, in runs of positions: a year of two logs that are loaded each day fits, in about a megabyte.
 * Each manifest is written anew as a whole. Where there is more, what the oldest loads gave is not known any more.
 */
export const loadRunsMax = 32_768;

/** Runs that take as many bytes as what a manifest keeps of a source that was loaded. */
export const loadSourceRuns = 16;

/** One batch of a hot file, encoded: read and checked as a whole. */
export const hotBatchBytesMax = 256 * 1024 * 1024;

/** A hot file: it is sealed at `hotBytesMax`, which its last batch may pass. It is read as a whole after a crash. */
export const hotFileBytesMax = hotBytesMax + hotBatchBytesMax;

/** A frame between processes: a batch on its way to the writer, or a description. */
export const frameJsonBytesMax = 64 * 1024 * 1024;
export const framePayloadBytesMax = hotBatchBytesMax;

/** Requests of one process that the writer has not answered yet; it reads no more until one is. */
export const channelRequestsMax = 64;

/** Processes connected to the writer: readers and loaders on one machine, far fewer than this. */
export const channelConnectionsMax = 1000;

/**
 * A page of a sealed segment, decompressed: a row group's bytes, plus one value that went over its bound and what the
 * encoding adds. A larger claim is damage, and is not allocated.
 */
export const pageBytesMax = rowGroupBytesMax + 2 * valueBytesMax + 16 * rowGroupRowsMax;

/**
 * The memory that a thread's kernels copy their arguments to. Two pages of the largest size fit, compressed and not;
 * a call that wants more fails.
 */
export const kernelScratchBytesMax = 256 * 1024 * 1024;

/** How late a live record may be before it counts as history, unless configured otherwise. */
export const graceMsDefault = 3_600_000;

/** The longest time a query may take, unless configured otherwise; removed files stay that long for other processes. */
export const queryTimeoutMsDefault = 60_000;

/** How often the writer looks for a day that has ended and for files to remove, and a waiting server for the lock. */
export const maintenanceIntervalMs = 1000;

/**
 * A round of that which takes longer does not end any more. It waits for the commits of every agent, and so for a load that holds its
 * ordinals (`reservationMsMax`) or a seal on a slow disk.
 */
export const upkeepMsMax = 5 * 60_000;

/** Segments merged at once, and the compressed bytes of one row group of each. */
export const compactionSegmentsMax = 32;
export const compactionBytesMax = 64 * 1024 * 1024;

/** Memory of decoded columns that compaction uses again and again: two row groups of common size. More of them come from the heap. */
export const rewritePoolBytesMax = 32 * 1024 * 1024;

/** A configuration file is read whole; a longer one is a log or an archive that was named by mistake. */
export const configBytesMax = 1024 * 1024;

/** Bytes read at once while a file is verified. */
export const verifyPieceBytes = 1024 * 1024;

/** Runs in one exported file: a footer holds them, and scattered matches make a run each. More begin another file. */
export const exportRunsMax = 256 * 1024;

/** An answer that takes this many rows of a row group leaves its columns out of the cache: it costs more than decoding them. */
export const bulkRowsMin = 16 * 1024;

/**
 * Rows that the thread which answers writes by itself before others do, where a row group has at least so many more: handing them
 * over takes tens of microseconds, writing a row a fraction of one.
 */
export const inlineRowsMax = 512;
export const lineJobRowsMin = 128;

/** Row groups that it writes rows of in one job: their columns stay in memory as long as that takes. */
export const lineJobRowGroupsMax = 16;

/** What is lent to it for its kernels: the description of 1000 columns and some list of rows. */
export const lineArgumentBytes = 128 * 1024;

/** Such jobs of one answer at once, whose lines wait for the client; as many again are written meanwhile. */
export const lineJobsMax = 8;

/** The jobs of all answers at once: how many answers have a turn, and what their lines take of the memory together. */
export const lineJobsOfAllMax = 32;

/**
 * While others wait, an answer keeps its turn this long, in which megabytes are written, so that the columns of a row group are decoded
 * once for many lines; and this long while its client takes nothing, which the pauses of one that keeps pace don't reach.
 */
export const turnMs = 150;
export const turnPatienceMs = 100;

/** Answers that keep what they hold while their clients take their time: a megabyte each, where a search has found rows in many row groups. */
export const idleScansMax = 64;

/**
 * Strings that a query searches on the thread that answers, once they are in memory: less than a millisecond, about what
 * handing them over costs. Beyond the first row group and these, other threads search.
 */
export const inlineSearchBytesMax = 8 * 1024 * 1024;

/** A column of strings of at least so many bytes is searched on a thread, and not kept, the first time that it is searched. */
export const streamedBytesMin = 1024 * 1024;

/** It is read in pieces of so many bytes: a piece and what it decompresses to fit the nearest caches until both are searched. */
export const streamedPieceBytes = 256 * 1024;

/**
 * Row groups that a query compares the rows of on the thread that answers, once they are in memory, and the bytes of their columns, in some
 * ten milliseconds: two threads that have to be woken and told of each row group are no sooner through that. Where so many rows match, it
 * has the answer to look after besides.
 */
export const inlineRowGroupsMax = 4;
export const inlineCompareBytesMax = 64 * 1024 * 1024;
export const inlineMatchesMax = 1024;

/** Row groups that a thread looks at in one job, at least where there are as many and at most, and what it may hold of their columns. */
export const narrowJobRowGroupsMin = 4;
export const narrowJobRowGroupsMax = 16;
export const narrowJobBytesMax = 8 * 1024 * 1024;

/**
 * Dictionaries with so many strings get a filter of them, of one or two bytes for each beside the six and more that it takes itself, when
 * they have been searched for a whole string this often: then the searches have taken as long as making it does.
 */
export const filteredEntriesMin = 1024;
export const searchesBeforeFilter = 4;

/** Where a thread that searches a row group puts its bitmap and the needle, which a request line bounds. */
export const selectScratchBytes = 128 * 1024;

/** Worker threads taken unless configured otherwise: beyond these, what remains for one thread to do is the limit. */
export const workersDefaultMax = 8;

/** Worker threads of one process: each may hold a row group decoded and encoded. */
export const workersMax = 64;

/** Jobs of one query or load that no thread has taken. Queries and loads look only a few jobs ahead, so that more are a bug. */
export const jobsWaitingMax = 4096;

/**
 * Row groups whose filters are asked in one job, at least where there are as many: a probe takes microseconds, a job tens of them. And at
 * most: other queries wait for a job of some milliseconds.
 */
export const probesOfJobMin = 8;
export const probesOfJobMax = 2048;

/**
 * Filters are kept in memory from the second query on that asks them: up to this share of the memory for decoded columns. Beyond it they are
 * asked in their files. A query has so many bytes of them read at most, or those of one segment, so that it does not wait for all of a
 * large archive.
 */
export const filtersKeptShare = 1 / 4;
export const filtersKeptOfQueryBytesMax = 16 * 1024 * 1024;

/**
 * Where filters are read before anybody asks for them: segments that one job looks at, some ten microseconds each, and the pause after a job while
 * threads work for queries. A job reads some megabytes, so that it has a third of a thread then, at most.
 */
export const surveyedSegmentsMax = 256;
export const filtersAheadPauseMs = 5;

/** A thread reads pieces of filters, and stripes of sketches, into memory of this size; more than fits is rare, and read into its own. */
export const probeReadBytes = 64 * 1024;

/**
 * Files that a worker thread keeps open, and how long without use: those of a year of days, because opening one takes longer than reading
 * from it. Far below what a process may have by default.
 */
export const openFilesMax = 512;
export const openFilesIdleMs = 5000;

/**
 * Row groups whose filters a scan asks about at once: one at first, which answers many queries, then this many times those that it has gone
 * past. Asking takes a microsecond or some a row group, a round trip to the threads a hundred of them.
 */
export const probesAheadFactor = 8;
export const probesAheadMax = 8192;

/** Row groups that a scan looks at ahead of the one whose rows it takes: each waits for its turn with a bitmap at most. */
export const rowGroupsAheadMax = 64;

/** Smaller row groups, and files, are done by the thread that asks: beginning another one would take longer. */
export const workerRowsMin = 4096;
export const workerFileBytesMin = 2 * 1024 * 1024;

/** Larger files are decoded in larger pieces: there are enough of them for all threads, and each piece costs a trip. */
export const largeFileBytesMin = 64 * 1024 * 1024;

/**
 * Segments get ZSTD once their day is this long past, unless configured otherwise: what is asked for again and again is of
 * the last days and stays LZ4, which decodes several times as fast; what lies longer is read rarely and gets a third smaller.
 */
export const zstdAfterMsDefault = 7 * 86_400_000;

/** Smaller segments stay as they are with age: what ZSTD would save of them is a few blocks of the file system. */
export const zstdBytesMin = 64 * 1024;

/** Segments below a row group that a day keeps: more are merged at once, which costs at most a few row groups. */
export const smallSegmentsMax = 2;

/**
 * Larger segments of a day are merged when there are this many of like size, so that a record is rewritten once for each
 * time that its segment becomes this many times as large: at most twice before a segment is full.
 */
export const segmentFanIn = 8;

/** The part of one thread's time, and with it of the disk's, that compaction in the background takes at most. */
export const backgroundShare = 0.5;

/** How long an agent whose compaction failed in the background is left alone: a full disk does not get better by trying. */
export const backgroundRetryMs = 60_000;

/**
 * The time that retention goes by moves on by as much as passes between two looks: an hour, or a weekend without a record. Where records
 * should have gone longer ago than this, it has leapt, as by a clock that is set wrong, and they wait for somebody to see it.
 */
export const retentionLeapMsMax = 7 * 24 * 3_600_000;

/**
 * With less free, in bytes, the next commit is likely to fail: what a busy log gives to one, and the manifest behind it, take a few
 * megabytes.
 */
export const diskFreeBytesMin = 16 * 1024 * 1024;

/**
 * With less of the disk free, a stricter retention does not wait: a full disk ends collection of all agents, which costs more than
 * records that were to go in a day.
 */
export const diskFreeShareMin = 0.1;

/**
 * Records that retention has taken and that still lie in files, as a part of the live ones. With more the background rewrites
 * the segments that hold most of them, so that the disk never has more than this beyond what is kept.
 */
export const retiredShareMax = 1 / 6;

/** The footer of a segment that no manifest describes: 64 row groups of 1000 fields stay below it. */
export const footerBytesMax = 256 * 1024 * 1024;

/** The header of a segment: 1000 fields with names of a hundred characters stay below it. */
export const segmentHeaderBytesMax = 1024 * 1024;

/** Runs that a segment's header is tried to be filled with: those of a day's hours and of many late rows, more than fit. */
export const segmentHeaderRunsMax = 4096;

/**
 * A rebuilt manifest goes on at the next multiple of this, above every ordinal that is known: no hour can have taken more
 * records since (that would be more than a million a second), and 256 of these fit.
 */
export const repairOrdinalStep = 2 ** 32;

/** The footer of a file of another program: those of thousands of row groups have some megabytes. */
export const foreignFooterBytesMax = 64 * 1024 * 1024;

/** Columns of such a file, those inside of others included: an agent takes a thousand of them at most. */
export const foreignColumnsMax = 10_000;

/** Column chunks of such a file, whose description takes some hundred bytes of memory each. */
export const foreignChunksMax = 1_000_000;

/** Values of a page of such a file, those of lists and the missing ones included: a page of nothing but nulls takes a few bytes for all of them. */
export const foreignPageValuesMax = 16 * 1024 * 1024;

/** A page's header, with bounds of its values that may be long. */
export const foreignPageHeaderBytesMax = 1024 * 1024;

/** What one column of a span of such a file may take decoded, and what comes with it of the spans beside. */
export const foreignSpanBytesMax = 256 * 1024 * 1024;
export const foreignSiblingBytesMax = 64 * 1024 * 1024;

/** What all columns of a span may take that is to be stored: it is in memory as a whole, and the next one is read meanwhile. */
export const importSpanBytesMax = 512 * 1024 * 1024;

/** Footers of such files that a thread keeps: a column of a file is read row group by row group. */
export const foreignFootersMax = 4;

/** Buffers of an Arrow file whose first bytes are part of its hash: reading them takes a few microseconds each. */
export const foreignHashedBuffersMax = 16 * 1024;

/**
 * How long a thread may take for one column of a row group of such a file, or for a footer: the largest that are usual take seconds. And the
 * memory of its objects: the text of a nested value takes several times its bytes.
 */
export const guardedMsMax = 30_000;
export const guardedHeapMb = 384;

/** How long such a thread stays without a job. */
export const guardedIdleMs = 10_000;

/** Attached files of one list, which is written anew when one of them changes: some hundred bytes for each. */
export const attachedFilesOfListMax = 256;

/** A list of attached files: those whose rows lie in no order of time have megabytes of placements each. */
export const attachedListBytesMax = 256 * 1024 * 1024;

/** Columns of an attached file of which it is kept where the pages of a row group lie. */
export const attachedPageTablesMax = 4096;

/** Column chunks of attached files whose descriptions are kept in memory, some hundred bytes each. */
export const describedChunksMax = 200_000;

/** Pages of a column chunk of such a file: the smallest that are usual have 8 KiB, and a chunk rarely more than a gigabyte. */
export const foreignPagesMax = 256 * 1024;

/** A column chunk of such a file up to this size is read at once, when all of it is read: most are, and each thread reads one. */
export const foreignChunkReadMax = 64 * 1024 * 1024;

/** Spans of an attached file: 65 thousand million rows. */
export const attachedSpansMax = 1_000_000;

/** Placements of an agent's attached files: some 18 million runs, which take some sixty bytes of memory each. 10⁸ rows that are scattered over a year fit. */
export const attachedPlacementsBytesMax = 48 * 1024 * 1024;

/** Times that fall into calendars: years of four digits, from 1 to 9999. Counts have one bucket for all before them, and one for all behind. */
export const calendarFromMs = -62_135_596_800_000;
export const calendarEndMs = 253_402_300_800_000;

/** Buckets of time in one count that hold records: more than any screen shows, and a year of hours fits. */
export const countBucketsMax = 10_000;

/** Most frequent values that a count gives. */
export const countTopMax = 1000;

/** Numbers of records by bucket and value in one answer: megabytes of it. */
export const countCellsMax = 1024 * 1024;

/** The same of one row group, on a thread: half a megabyte. Of more, only the most frequent values are counted by bucket, in a second pass. */
export const countPairsOfRowGroupMax = 128 * 1024;

/** Different values that a count tells apart, and the bytes of their text. Users and addresses of a large site fit; ids do not. */
export const countValuesMax = 2 * 1024 * 1024;
export const countTextBytesMax = 128 * 1024 * 1024;

/** Memory that the values of all counts of the process take together: two of the largest while they grow, or many usual ones. */
export const countMemoryBytesMax = 768 * 1024 * 1024;

/**
 * Bytes of columns that a count goes through on the thread that answers, once they are in memory: ten million times, in some ten milliseconds.
 * Two threads that have to be woken and told of each row group are no sooner through that.
 */
export const countInlineBytesMax = 128 * 1024 * 1024;

/** Row groups that a thread goes through in one job, and the bytes of their columns. */
export const countJobRowGroupsMax = 16;
export const countJobBytesMax = 16 * 1024 * 1024;

/** What such a job is lent for its kernels: a dictionary of a row group and its counts. */
export const countScratchBytes = 4 * 1024 * 1024;

/** Where less than one row in so many is counted, or a row group has more text, its strings are told apart row by row and not numbered first. */
export const countRowsForOneMax = 8;
export const countNumberedBytesMax = 8 * 1024 * 1024;

/** How often the state of a writer in another process is looked at for those who follow it: a small part of the second that a record may take. */
export const statePollMs = 200;
