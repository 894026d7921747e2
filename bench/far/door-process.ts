import { ChdbDoor } from './chdb-door.js';

/** Today's ClickHouse in a process of its own, which says where it is and lives until it is told to end. */
const door = await ChdbDoor.start();
process.once('SIGTERM', () => {
  void door.close().then(() => process.exit(0));
});
process.stdout.write(`serving ${door.url} (chdb)\n`);
