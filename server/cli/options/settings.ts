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
const configOfMachine = '/etc/logstrata/config.yaml';
const agentsDefault = 'agents';

/**
 * Path of the configuration: the one that `--config` names, or else `LOGSTRATA_CONFIG`; or else `config.yaml` in the working folder, or the machine's,
 * if they are there. A working folder with agents of its own has nothing to do with those of the machine. Undefined where there is none.
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

/**
 * Reads the configuration (`configPathOf`), if there is one; a flag wins over what it says. Throws a `ConfigError` with every mistake in it.
 */
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

/** Where there is no such file, what reads YAML need not be loaded. */
async function readConfigFile(path: string): Promise<Config> {
  const { readConfig } = await import('../../../agents/definition/config-file.js');
  return readConfig(path);
}
