import { isLogstrataError } from '../terms/errors.js';
import type { Directory } from '../store/disk/directory.js';

/**
 * Files of an agent that are put aside: `dt=…/x.parquet` becomes `quarantine/dt=…/x.parquet.aside`, where no tool that looks
 * for Parquet files takes it for one. They get that name before a manifest is published that goes on without them, and
 * lose the old one afterwards, so that no crash can lose what is in them.
 */
export class Quarantine {
  readonly taken: { file: string; to: string; reason: string }[] = [];

  constructor(
    private readonly directory: Directory,
    private readonly agent: string,
  ) {}

  add(file: string, reason: string): void {
    this.taken.push({ file, to: `quarantine/${file}.aside`, reason });
  }

  /** Gives each file its second name, durably. One that is not there has nothing to put aside. */
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
        // An earlier repair, which was interrupted, has come this far.
        else if (error.code !== 'exists') throw error;
      }
      await this.directory.syncDirectory(folder);
    }
  }

  async removeOriginals(): Promise<void> {
    for (const { file } of this.taken) await this.directory.remove(`${this.agent}/${file}`);
  }

  /** Puts a file aside that nothing depends on any more. */
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
