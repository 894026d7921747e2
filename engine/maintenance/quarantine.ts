import { isLogstrataError } from '../terms/errors.js';
import type { Directory } from '../store/disk/directory.js';

/**
 * Files of an agent that are put aside: `dt=…/x.parquet` becomes `quarantine/dt=…/x.parquet.aside`, which tools that look for Parquet files
 * do not match. Each file is linked to the new name before the manifest without it is published, and its old name is removed afterwards. So
 * no crash can lose its content.
 */
export class Quarantine {
  readonly taken: { file: string; to: string; reason: string }[] = [];

  constructor(
    private readonly directory: Directory,
    private readonly agent: string,
  ) {}

  /** Adds a file that `link` and `removeOriginals` are to move. */
  add(file: string, reason: string): void {
    this.taken.push({ file, to: `quarantine/${file}.aside`, reason });
  }

  /** Links each file to its second name, durably. Skips missing files. */
  async link(): Promise<void> {
    for (const { file, to } of [...this.taken]) {
      const folder = `${this.agent}/${to.slice(0, to.lastIndexOf('/'))}`;
      await this.directory.makeDirectory(folder);
      try {
        await this.directory.link(`${this.agent}/${file}`, `${this.agent}/${to}`);
      } catch (error) {
        if (!isLogstrataError(error)) throw error;
        if (error.code === 'not_found')
          this.taken.splice(
            this.taken.findIndex((item) => item.file === file),
            1,
          );
        // An interrupted repair has linked it already.
        else if (error.code !== 'exists') throw error;
      }
      await this.directory.syncDirectory(folder);
    }
  }

  /** Removes the old names of the linked files, after the manifest without them is published. */
  async removeOriginals(): Promise<void> {
    for (const { file } of this.taken) await this.directory.remove(`${this.agent}/${file}`);
  }

  /** Puts a file aside that nothing refers to any more. */
  async move(file: string, reason: string): Promise<void> {
    const to = `quarantine/${file}.aside`;
    await this.directory.makeDirectory(`${this.agent}/quarantine`);
    try {
      await this.directory.rename(`${this.agent}/${file}`, `${this.agent}/${to}`);
      this.taken.push({ file, to, reason });
    } catch (error) {
      if (!isLogstrataError(error) || error.code !== 'not_found') throw error;
    }
  }
}
