import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { defaultConfig, type Config } from '../../../agents/definition/config.js';

/** The options that every command takes. */
export interface GlobalFlags {
  readonly agents?: string | undefined;
  readonly data?: string | undefined;
  readonly config?: string | undefined;
  /** Bytes, of the commands that have `--cache`. */
  readonly cache?: number | undefined;
}

/** What a command works with: the configuration, and the folders that flags, configuration and defaults agree on. */
export interface Settings {
  readonly config: Config;
  /** The configuration file, or undefined when there is none. */
  readonly configPath: string | undefined;
  readonly agentsFolder: string;
  readonly dataFolder: string;
  /** Bound on the decoded columns in memory; null for a share of the machine's. */
  readonly cacheBytes: number | null;
}

const configDefault = 'config.yaml';
const agentsDefault = 'agents';

/**
 * Reads the configuration that the flags name, or `config.yaml` if it is there; a flag wins over what it says.
 * Throws a `ConfigError` with every mistake in it.
 */
export async function readSettings(flags: GlobalFlags): Promise<Settings> {
  const configPath = flags.config ?? (existsSync(configDefault) ? configDefault : undefined);
  const config = configPath === undefined ? defaultConfig : await readConfigFile(configPath);
  const beside = configPath === undefined ? agentsDefault : join(dirname(configPath), agentsDefault);
  return {
    config,
    configPath,
    agentsFolder: flags.agents ?? beside,
    dataFolder: flags.data ?? config.storage.path,
    cacheBytes: flags.cache ?? config.storage.cacheBytes,
  };
}

/** Where there is no such file, what reads YAML need not be loaded. */
async function readConfigFile(path: string): Promise<Config> {
  const { readConfig } = await import('../../../agents/definition/config-file.js');
  return readConfig(path);
}
