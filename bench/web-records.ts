import { arrivalTimes } from './arrivals.js';
import { Random, WeightedIndex, zipfWeights } from './random.js';

/** A request to a busy web server, as in its access log. */
export interface WebRecord {
  readonly timeMs: number;
  readonly remoteAddr: string;
  readonly remoteUser: string | null;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly bytes: number;
  /** In seconds, with three decimals. */
  readonly requestTime: number;
  readonly referer: string | null;
  readonly userAgent: string;
  /** 32 hexadecimal digits, unique but for chance. */
  readonly requestId: string;
  readonly message: string;
}

/** The options of generated records. */
export interface RecordOptions {
  readonly rows: number;
  /** Start of the first day in milliseconds since the epoch. */
  readonly startMs: number;
  readonly days: number;
  readonly seed: number;
}

const addressesMax = 60_000;
const users = [
  'alice',
  'bob',
  'carol',
  'dave',
  'erin',
  'frank',
  'grace',
  'heidi',
  'ivan',
  'judy',
  'mallory',
  'olga',
];
const topics = [
  'shoes',
  'lamps',
  'garden',
  'books',
  'music',
  'bikes',
  'coffee',
  'tools',
  'toys',
  'paper',
  'travel',
  'maps',
];
const resources = [
  'orders',
  'users',
  'carts',
  'items',
  'prices',
  'search',
  'sessions',
  'events',
  'reviews',
  'stock',
];
const assets = [
  'app.js',
  'vendor.js',
  'main.css',
  'logo.svg',
  'hero.jpg',
  'icons.woff2',
  'favicon.ico',
  'print.css',
];
const probes = [
  '/wp-login.php',
  '/.env',
  '/admin.php',
  '/phpmyadmin/',
  '/.git/config',
  '/cgi-bin/luci',
  '/xmlrpc.php',
];
const sites = [
  'https://www.example.com',
  'https://shop.example.com',
  'https://search.example.net',
  'https://news.example.org',
];
const systems = [
  'Windows NT 10.0; Win64; x64',
  'Macintosh; Intel Mac OS X 10_15_7',
  'X11; Linux x86_64',
  'Linux; Android 15; Pixel 9',
];
const robots = [
  'curl/8.10.1',
  'Go-http-client/2.0',
  'Mozilla/5.0 (compatible; ExampleBot/2.1; +https://bot.example.net/about)',
  'python-requests/2.32.3',
];

/** The values that records are drawn from, which are fixed within a run: clients, paths and user agents. */
interface Population {
  readonly addresses: readonly string[];
  readonly addressIndex: WeightedIndex;
  readonly paths: readonly string[];
  readonly pathIndex: WeightedIndex;
  readonly agents: readonly string[];
  readonly agentIndex: WeightedIndex;
}

function makeAddresses(count: number, random: Random): string[] {
  // 198.18.0.0/15 is reserved for benchmarks (RFC 2544): 131,072 addresses that nobody uses.
  const step = 2 * random.below(32_768) + 1;
  return Array.from({ length: count }, (_, i) => {
    const host = (Math.imul(i, step) + 77) & 0x1ffff;
    return `198.${18 + (host >> 16)}.${(host >> 8) & 0xff}.${host & 0xff}`;
  });
}

function makePaths(random: Random): string[] {
  const paths = ['/', '/health', '/login', '/cart', '/search'];
  for (const asset of assets) paths.push(`/static/${random.hex(8)}/${asset}`);
  for (const resource of resources) paths.push(`/api/v1/${resource}`, `/api/v1/${resource}?page=2&size=50`);
  for (let i = 0; i < 1500; i++)
    paths.push(`/${random.pick(topics)}/${random.pick(topics)}-${100 + random.below(9000)}`);
  return paths;
}

function makeAgents(random: Random): string[] {
  const agents = Array.from({ length: 240 }, () => {
    const system = random.pick(systems);
    const major = 118 + random.below(14);
    if (random.below(4) === 0)
      return `Mozilla/5.0 (${system}; rv:${major}.0) Gecko/20100101 Firefox/${major}.0`;
    const build = `${major}.0.${6000 + random.below(900)}.${random.below(200)}`;
    return `Mozilla/5.0 (${system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${build} Safari/537.36`;
  });
  agents.splice(6, 0, ...robots);
  return agents;
}

function makePopulation(rows: number, random: Random): Population {
  const addresses = makeAddresses(Math.min(addressesMax, Math.max(200, Math.floor(rows / 8))), random);
  const paths = makePaths(random);
  const agents = makeAgents(random);
  return {
    addresses,
    addressIndex: new WeightedIndex(zipfWeights(addresses.length, 0.9)),
    paths,
    pathIndex: new WeightedIndex(zipfWeights(paths.length, 0.95)),
    agents,
    agentIndex: new WeightedIndex(zipfWeights(agents.length, 1.05)),
  };
}

function drawPath(population: Population, random: Random): string {
  const kind = random.below(100);
  if (kind < 2) return random.pick(probes);
  // A fifth of the paths has a number of its own, so that the column is not fully covered by a dictionary.
  if (kind < 22) return `/api/v1/${random.pick(resources)}/${100_000 + random.below(900_000)}`;
  return population.paths[population.pathIndex.draw(random)]!;
}

function drawStatus(path: string, method: string, random: Random): number {
  if (probes.includes(path)) return random.below(5) === 0 ? 403 : 404;
  const chance = random.below(10_000);
  if (chance < 12) return 500;
  if (chance < 20) return 502;
  if (chance < 26) return 504;
  if (chance < 150) return 404;
  if (chance < 260) return 301;
  if (chance < 330) return 401;
  if (method === 'POST') return chance < 6000 ? 201 : 200;
  return path.startsWith('/static/') && chance < 4500 ? 304 : 200;
}

function drawBytes(status: number, path: string, random: Random): number {
  if (status === 304) return 0;
  if (status >= 300) return 150 + random.below(400);
  return Math.floor(200 + random.exponential(path.startsWith('/static/') ? 40_000 : 4_000));
}

function makeRecord(timeMs: number, population: Population, random: Random): WebRecord {
  const path = drawPath(population, random);
  const chance = random.below(100);
  const method =
    chance < 86 ? 'GET' : chance < 95 ? 'POST' : chance < 97 ? 'PUT' : chance < 99 ? 'HEAD' : 'DELETE';
  const status = drawStatus(path, method, random);
  const bytes = method === 'HEAD' ? 0 : drawBytes(status, path, random);
  const requestTime =
    status === 504 ? 60 : Math.round(1 + random.exponential(status >= 500 ? 900 : 45)) / 1000;
  const remoteAddr = population.addresses[population.addressIndex.draw(random)]!;
  const requestId = random.hex(32);
  const upstream = `10.0.${random.below(4)}.${10 + random.below(12)}:8080`;
  const outcome = status >= 500 ? 'failed with' : 'answered';
  return {
    timeMs,
    remoteAddr,
    remoteUser: random.below(12) === 0 ? random.pick(users) : null,
    method,
    path,
    status,
    bytes,
    requestTime,
    referer: random.below(5) < 3 ? `${random.pick(sites)}/${random.pick(topics)}` : null,
    userAgent: population.agents[population.agentIndex.draw(random)]!,
    requestId,
    message: `${method} ${path} ${outcome} ${status} in ${requestTime.toFixed(3)} s by ${upstream}, request ${requestId}`,
  };
}

/** Records of a web server in the order of their times, with skewed distributions as in real logs. The same options give the same records. */
export function* webRecords(options: RecordOptions): Generator<WebRecord> {
  const random = new Random(options.seed);
  const population = makePopulation(options.rows, random);
  for (const timeMs of arrivalTimes(
    options.rows,
    options.startMs,
    options.days,
    new Random(options.seed ^ 0x5bd1e995),
  )) {
    yield makeRecord(timeMs, population, random);
  }
}

/** A record as JSON, about 500 bytes, without a line end. */
export function webRecordAsJson(record: WebRecord): string {
  return JSON.stringify({
    time: new Date(record.timeMs).toISOString(),
    remote_addr: record.remoteAddr,
    remote_user: record.remoteUser,
    method: record.method,
    path: record.path,
    status: record.status,
    bytes: record.bytes,
    request_time: record.requestTime,
    referer: record.referer,
    user_agent: record.userAgent,
    request_id: record.requestId,
    message: record.message,
  });
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

function commonTime(timeMs: number): string {
  const iso = new Date(timeMs).toISOString();
  return `${iso.slice(8, 10)}/${months[Number(iso.slice(5, 7)) - 1]}/${iso.slice(0, 4)}:${iso.slice(11, 19)} +0000`;
}

/** A record as a line of nginx's `combined` format, about 230 bytes, without a line end. */
export function webRecordAsCombined(record: WebRecord): string {
  return (
    `${record.remoteAddr} - ${record.remoteUser ?? '-'} [${commonTime(record.timeMs)}] ` +
    `"${record.method} ${record.path} HTTP/1.1" ${record.status} ${record.bytes} ` +
    `"${record.referer ?? '-'}" "${record.userAgent}"`
  );
}
