import { ChdbDoor } from './chdb-door.js';

/** Runs the current ClickHouse (chdb) in a process of its own. It prints its address, and ends at SIGTERM. */
const door = await ChdbDoor.start();
process.once('SIGTERM', () => {
  void door.close().then(() => process.exit(0));
});
process.stdout.write(`serving ${door.url} (chdb)\n`);
