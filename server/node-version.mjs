// Ends the process with a message where Node is too old. Imports that need a newer Node come after this one. Node 12.20 and later must be
// able to run this file, so it must not import anything newer by name.
import { readFileSync } from 'fs';

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const needed = engines.node.replace('>=', '');

/** The version as one number, so that versions can be compared. */
const rank = (version) =>
  version.split('.').reduce((sum, part, i) => sum + parseInt(part, 10) * [1e6, 1e3, 1][i], 0);

if (rank(process.versions.node) < rank(needed)) {
  process.stderr.write(
    `logstrata: Node.js ${needed} or newer is needed, and this is ${process.versions.node} (${process.execPath}): ` +
      'get one from https://nodejs.org, or with a version manager such as nvm or fnm\n',
  );
  process.exit(1);
}
