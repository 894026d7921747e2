// Says which Node is needed, and ends, where this one is older. What needs a newer one is imported or run behind this. Node from 12.20 on
// reads this file: it must name nothing that came later.
import { readFileSync } from 'fs';

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const needed = engines.node.replace('>=', '');

/** Numbers that compare as versions do. */
const rank = (version) =>
  version.split('.').reduce((sum, part, i) => sum + parseInt(part, 10) * [1e6, 1e3, 1][i], 0);

if (rank(process.versions.node) < rank(needed)) {
  process.stderr.write(
    `logstrata: Node.js ${needed} or newer is needed, and this is ${process.versions.node} (${process.execPath}): ` +
      'get one from https://nodejs.org, or with a version manager such as nvm or fnm\n',
  );
  process.exit(1);
}
