import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { manifestVersion } from '../../engine/store/manifest/manifest-format.js';
import { recordsOf, workFolder } from '../cli/process.js';
import { changePackage, changeProgram, installPackage, unpackedPackage } from './installed-package.js';

const exec = promisify(execFile);

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A machine with a data folder, on which versions of the program are installed one after another. */
class Machine {
  readonly folder = workFolder();
  readonly prefix = join(this.folder, 'opt');

  constructor() {
    mkdirSync(join(this.folder, 'logs'));
    writeFileSync(
      join(this.folder, 'agents/numbers.yaml'),
      "fields: [{ name: n, type: int }]\nfile: { path: '../logs/n\\.log', format: json }\n",
    );
  }

  /** Appends lines to the log, numbered from 0. */
  write(lines: number): void {
    const text = Array.from({ length: lines }, (_, n) => `{"n":${n}}\n`).join('');
    writeFileSync(join(this.folder, 'logs/n.log'), text);
  }

  async run(...words: string[]): Promise<Ended> {
    const main = join(this.prefix, 'node_modules/logstrata/server/logstrata.mjs');
    return exec(process.execPath, [main, ...words], { cwd: this.folder }).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      ({ code, stdout, stderr }: Ended) => ({ code, stdout, stderr }),
    );
  }

  /** Runs a command that must succeed. */
  async does(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...words);
    expect(code, `${words.join(' ')}: ${stderr}`).toBe(0);
    return stdout;
  }

  async answer(): Promise<string> {
    return this.does('query', 'numbers', '--limit', '1000');
  }

  /** All files of the data folder, with their content. */
  content(): Record<string, string> {
    const store = join(this.folder, 'data/store');
    const files = readdirSync(store, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    return Object.fromEntries(
      files.map((entry) => {
        const path = join(entry.parentPath, entry.name);
        return [path, readFileSync(path).toString('base64')];
      }),
    );
  }
}

const numbersOf = (answer: string): unknown[] => recordsOf(answer).map(({ n }) => n);
const count = (to: number): number[] => Array.from({ length: to }, (_, n) => n);

/** The package as it would be published. */
let packed = '';

beforeAll(async () => {
  packed = await unpackedPackage();
});

afterAll(() => rmSync(dirname(packed), { recursive: true, force: true }));

/** A copy of it that a test may change. */
function ownPackage({ folder }: Machine): string {
  const own = join(folder, 'package');
  cpSync(packed, own, { recursive: true });
  return own;
}

describe('an upgrade, and the way back', () => {
  it('keeps records and cursors in both directions if the formats are the same', async () => {
    const machine = new Machine();
    const unpacked = ownPackage(machine);
    installPackage(machine.prefix, unpacked);
    const old = (await machine.does('--version')).trim();
    machine.write(100);
    await machine.does('load', 'numbers', 'logs/n.log');
    const before = await machine.answer();

    changePackage(unpacked, 'package.json', /"version": "[^"]+"/, '"version": "99.0.0"');
    installPackage(machine.prefix, unpacked);
    expect(await machine.does('--version')).toBe('99.0.0\n');
    await machine.does('check');
    await machine.does('verify');
    expect(await machine.answer()).toBe(before);
    // The log is read on, and no line is stored twice.
    machine.write(150);
    await machine.does('load', 'numbers', 'logs/n.log');
    await machine.does('compact');
    const newer = await machine.answer();
    expect(newer.startsWith(before)).toBe(true);
    expect(numbersOf(newer)).toEqual(count(150));

    changePackage(unpacked, 'package.json', /"version": "[^"]+"/, `"version": "${old}"`);
    installPackage(machine.prefix, unpacked);
    expect(await machine.answer()).toBe(newer);
    machine.write(160);
    await machine.does('load', 'numbers', 'logs/n.log');
    expect(numbersOf(await machine.answer())).toEqual(count(160));
    await machine.does('verify');
  });

  it('needs the copy if the newer version has a newer format, which the older one refuses and does not change', async () => {
    const machine = new Machine();
    const unpacked = ownPackage(machine);
    installPackage(machine.prefix, unpacked);
    machine.write(100);
    await machine.does('load', 'numbers', 'logs/n.log');
    await machine.does('backup', 'before');
    const before = await machine.answer();

    // A newer version reads the older format. Here its version number is changed, so the store must be written anew.
    changeProgram(unpacked, /\bmanifestVersion = \d+/, `manifestVersion = ${manifestVersion + 1}`);
    const newer = join(machine.folder, 'newer');
    installPackage(newer, unpacked);
    const store = join(machine.folder, 'data/store');
    rmSync(store, { recursive: true });
    machine.write(120);
    const main = join(newer, 'node_modules/logstrata/server/logstrata.mjs');
    await exec(process.execPath, [main, 'load', 'numbers', 'logs/n.log'], { cwd: machine.folder });

    const left = machine.content();
    const refusal = new RegExp(
      `was written by a newer version of logstrata: it has format version ${manifestVersion + 1}, but this version knows ${manifestVersion}`,
    );
    for (const words of [
      ['query', 'numbers'],
      ['load', 'numbers', 'logs/n.log'],
      ['compact', 'numbers'],
      ['verify', 'numbers'],
      ['verify', 'numbers', '--repair', '--yes'],
    ]) {
      const { code, stdout, stderr } = await machine.run(...words);
      expect([code, `${stdout}${stderr}`], words.join(' ')).toEqual([1, expect.stringMatching(refusal)]);
    }
    expect(machine.content()).toEqual(left);

    renameSync(store, `${store}.newer`);
    cpSync(join(machine.folder, 'before'), store, { recursive: true });
    expect(await machine.answer()).toBe(before);
    await machine.does('load', 'numbers', 'logs/n.log');
    expect(numbersOf(await machine.answer())).toEqual(count(120));
  });
});
