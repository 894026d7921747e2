import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { defaultConfig, type Config } from '../../../agents/definition/config.js';

/** The global options of the program. */
export interface GlobalFlags {
  readonly agents?: string | undefined;
  readonly data?: string | undefined;
  readonly config?: string | undefined;
  /** In bytes; only commands with `--cache` have it. */
  readonly cache?: number | undefined;
}

/** The settings of a command: the configuration, and the folders to use after flags, configuration and defaults are combined. */
export interface Settings {
  readonly config: Config;
  /** Path of the configuration file; undefined where there is none. */
  readonly configPath: string | undefined;
  readonly agentsFolder: string;
  readonly dataFolder: string;
  /** Bound in bytes on the decoded columns in memory; null for a share of the machine's memory. */
  readonly cacheBytes: number | null;
}

const configDefault = 'config.yaml';
const configOfMachine = '/etc/logstrata/config.yaml';
const agentsDefault = 'agents';

/**
 * The path of the configuration file: the value of `--config`, else of `LOGSTRATA_CONFIG`, else `config.yaml` in the working folder, else
 * that in /etc, as far as these exist. A working folder with an agents folder does not use the one in /etc. Undefined where there is none.
 */
export function configPathOf(
  named: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
  exists: (path: string) => boolean,
): string | undefined {
  const { LOGSTRATA_CONFIG: ofEnvironment = '' } = environment;
  if (named !== undefined) return named;
  if (ofEnvironment !== '') return ofEnvironment;
  if (exists(configDefault)) return configDefault;
  return exists(configOfMachine) && !exists(agentsDefault) ? configOfMachine : undefined;
}

/** Reads the configuration (`configPathOf`), if there is one. Flags override it. Throws a `ConfigError` with all mistakes in the file. */
export async function readSettings(flags: GlobalFlags): Promise<Settings> {
  const configPath = configPathOf(flags.config, process.env, existsSync);
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

/** Loads the YAML parser, which is not needed without a file, and reads the file. */
async function readConfigFile(path: string): Promise<Config> {
  const { readConfig } = await import('../../../agents/definition/config-file.js');
  return readConfig(path);
}
