#!/usr/bin/env node
// The command that npm links to. It exists before anything is built, because npx remembers whether a clone has a command: without one it
// would report "not found" even after a build. An old Node must be able to parse this file.
import './node-version.mjs';
import { existsSync } from 'fs';
import { fileURLToPath } from 'url';

const program = new URL('../dist/program/server/main.js', import.meta.url);

if (existsSync(program)) {
  import(program.href);
} else {
  const clone = fileURLToPath(new URL('..', import.meta.url));
  process.stderr.write(`logstrata: ${clone} is not built yet; run \`npm run build\` there\n`);
  process.exitCode = 1;
}
