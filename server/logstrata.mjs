#!/usr/bin/env node
// The command as npm links to it. It is there before anything is built: npx remembers what it has found of a clone, so that of a clone
// where it has found no command it would say "not found" for ever after, also once that is built. An old Node must be able to read it.
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
