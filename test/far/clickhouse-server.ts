import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fetchAlone, freePort } from '../cli/process.js';
import { describeUnless, unlessRequired } from '../needs.js';
import { Program } from './processes.js';

const serverPath = ['/usr/sbin/clickhouse-server', '/usr/bin/clickhouse-server'].find((path) =>
  existsSync(path),
);
const zookeeperJar = '/usr/share/java/zookeeper.jar';

const missingServers =
  serverPath !== undefined && existsSync(zookeeperJar)
    ? null
    : "there are no clickhouse-server and zookeeper of Debian's here";

/** Tests on real ClickHouse servers. */
export function describeWithClickHouse(title: string, tests: () => void): void {
  describeUnless(unlessRequired('clickhouse-server', missingServers), title, tests);
}

/** A ClickHouse server with its own folder and ports, on the loopback address. */
export class ClickHouseServer {
  #program: Program | undefined;

  private constructor(
    readonly folder: string,
    readonly port: number,
  ) {}

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  static async make(
    folder: string,
    zookeeperPort: number | null,
    httpPort?: number,
  ): Promise<ClickHouseServer> {
    const port = httpPort ?? (await freePort());
    const [tcp, interserver] = [await freePort(), await freePort()];
    await mkdir(folder, { recursive: true });
    const zookeeper =
      zookeeperPort === null
        ? ''
        : `<zookeeper><node><host>127.0.0.1</host><port>${zookeeperPort}</port></node><session_timeout_ms>5000</session_timeout_ms></zookeeper><merge_tree><zookeeper_session_expiration_check_period>1</zookeeper_session_expiration_check_period></merge_tree>`;
    await writeFile(
      join(folder, 'config.xml'),
      `<yandex><logger><level>warning</level><console>1</console></logger>
<listen_host>127.0.0.1</listen_host><http_port>${port}</http_port><http_server_default_response>${folder}</http_server_default_response><tcp_port>${tcp}</tcp_port>
<interserver_http_port>${interserver}</interserver_http_port><interserver_http_host>127.0.0.1</interserver_http_host>
<path>${folder}/data/</path><tmp_path>${folder}/tmp/</tmp_path><user_files_path>${folder}/files/</user_files_path>
<users_config>users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>16777216</mark_cache_size><remote_servers></remote_servers>${zookeeper}</yandex>`,
    );
    await writeFile(
      join(folder, 'users.xml'),
      `<yandex><profiles><default><max_memory_usage>1000000000</max_memory_usage><max_threads>2</max_threads>
<background_pool_size>4</background_pool_size><background_schedule_pool_size>4</background_schedule_pool_size></default></profiles>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users>
<quotas><default></default></quotas></yandex>`,
    );
    return new ClickHouseServer(folder, port);
  }

  async start(): Promise<this> {
    const args = [`--config-file=${join(this.folder, 'config.xml')}`];
    this.#program = new Program(serverPath!, args, this.folder);
    // Any ClickHouse would answer a ping, but only this one answers with its folder.
    await this.#program.ready(async () => (await (await fetchAlone(this.url)).text()) === this.folder);
    return this;
  }

  /** Waits until its tables accept rows again: after a while without ZooKeeper, or a start, they are read-only at first. */
  async writable(): Promise<void> {
    const sql = 'SELECT count() FROM system.replicas WHERE is_readonly';
    await this.#program!.ready(async () => (await this.ask(sql)).trim() === '0');
  }

  end(signal?: NodeJS.Signals): Promise<void> {
    return this.#program?.end(signal) ?? Promise.resolve();
  }

  freeze(): void {
    this.#program?.freeze();
  }

  thaw(): void {
    this.#program?.thaw();
  }

  /** Deletes everything that it has stored, like a lost disk. It must not be running. */
  async lose(): Promise<void> {
    await rm(join(this.folder, 'data'), { recursive: true, force: true });
  }

  /** The text that a statement returns. */
  async ask(sql: string): Promise<string> {
    const response = await fetchAlone(this.url, {}, sql);
    const answer = await response.text();
    if (!response.ok) throw new Error(answer);
    return answer;
  }
}

/** A ZooKeeper of one node. */
export class ZooKeeper {
  #program: Program | undefined;

  private constructor(
    readonly folder: string,
    readonly port: number,
  ) {}

  static async make(folder: string): Promise<ZooKeeper> {
    const port = await freePort();
    await mkdir(folder, { recursive: true });
    const lines = [
      'tickTime=500',
      `dataDir=${folder}/data`,
      `clientPort=${port}`,
      'clientPortAddress=127.0.0.1',
      'admin.enableServer=false',
      '4lw.commands.whitelist=conf',
      // What it has written survives a kill without that, and a busy disk would have it miss its sessions' deadlines.
      'forceSync=no',
    ];
    await writeFile(join(folder, 'zoo.cfg'), `${lines.join('\n')}\n`);
    return new ZooKeeper(folder, port);
  }

  async start(): Promise<this> {
    const classes = `${zookeeperJar}:/usr/share/java/*`;
    const main = 'org.apache.zookeeper.server.quorum.QuorumPeerMain';
    this.#program = new Program(
      'java',
      ['-Xmx128m', '-XX:TieredStopAtLevel=1', '-cp', classes, main, 'zoo.cfg'],
      this.folder,
    );
    await this.#program.ready(async () => (await configurationAt(this.port)).includes(`${this.folder}/data`));
    return this;
  }

  end(signal?: NodeJS.Signals): Promise<void> {
    return this.#program?.end(signal) ?? Promise.resolve();
  }
}

/** What the ZooKeeper at a port tells about itself, with its folder. */
function configurationAt(port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.end('conf');
  return text(socket);
}
