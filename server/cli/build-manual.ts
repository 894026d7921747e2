import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot, packageVersion } from './options.js';
import { buildProgram } from './program.js';
import { manPage } from './man-page.js';

// A step of the build: writes the manual page to where package.json names it. SOURCE_DATE_EPOCH (seconds) sets the date in the page, for
// reproducible builds.
const epoch = process.env['SOURCE_DATE_EPOCH'];
const dateMs = epoch === undefined ? Date.now() : Number(epoch) * 1000;
const folder = join(packageRoot(), 'man');
mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, 'logstrata.1'), manPage(buildProgram(), packageVersion(), dateMs));
