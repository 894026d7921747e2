/** A log of a named format, and what its first record is. */
export interface NamedFormat {
  readonly text: string;
  readonly title: string;
  readonly records: number;
  /** All fields of the first record that are not null. */
  readonly first: Readonly<Record<string, unknown>>;
  /** What is different in each of the other records; undefined for a field that is null there. */
  readonly others: readonly Readonly<Record<string, unknown>>[];
}

/** The time of the first record of all logs. */
export const time = '2026-11-28T05:00:00.250Z';
const seconds = Date.parse(time) / 1000;
const wholeSecond = '2026-11-28T05:00:00.000Z';

/** Three lines, or groups of lines, of which each has its number. */
export function lines(line: (i: number) => string): string {
  return Array.from({ length: 3 }, (_line, i) => `${line(i)}\n`).join('');
}

function json(value: (i: number) => object): string {
  return lines((i) => JSON.stringify(value(i)));
}

/** Formats of lines of JSON. */
export const jsonFormats: Readonly<Record<string, NamedFormat>> = {
  clef: {
    text: json((i) => ({
      '@t': time,
      '@mt': 'Order {Id} placed',
      '@l': 'Error',
      Id: i,
      '@x': 'System.Exception',
    })),
    title: 'JSON lines (CLEF)',
    records: 3,
    others: [{ id: 1 }, { id: 2 }],
    first: { time, message: 'Order {Id} placed', level: 'Error', id: 0, exception: 'System.Exception' },
  },
  'clef with some rendered messages': {
    text: json((i) => ({
      '@t': time,
      '@mt': 'Order {Id}',
      ...(i === 1 ? {} : { '@m': `Order ${i}` }),
      '@i': 'a1',
    })),
    title: 'JSON lines (CLEF)',
    records: 3,
    others: [{ message: 'Order {Id}' }, { message: 'Order 2' }],
    first: { time, message: 'Order 0', message_template: 'Order {Id}', event_id: 'a1' },
  },
  gelf: {
    text: json((i) => ({
      version: '1.1',
      host: 'web1',
      short_message: 'late',
      timestamp: seconds + i,
      level: 4,
      _user_id: i,
    })),
    title: 'JSON lines (GELF)',
    records: 3,
    others: [
      { time: '2026-11-28T05:00:01.250Z', user_id: 1 },
      { time: '2026-11-28T05:00:02.250Z', user_id: 2 },
    ],
    first: { time, version: '1.1', host: 'web1', message: 'late', level: 4, user_id: 0 },
  },
  mongodb: {
    text: json((i) => ({
      t: { $date: time },
      s: 'I',
      c: 'NETWORK',
      id: 22943 + i,
      ctx: 'listener',
      msg: 'Connection accepted',
      attr: { remote: '10.0.0.4:4711', connectionCount: i },
    })),
    title: 'JSON lines (MongoDB)',
    records: 3,
    others: [
      { id: 22944, attr_connection_count: 1 },
      { id: 22945, attr_connection_count: 2 },
    ],
    first: {
      time,
      level: 'I',
      component: 'NETWORK',
      id: 22943,
      context: 'listener',
      message: 'Connection accepted',
      attr_remote: '10.0.0.4:4711',
      attr_connection_count: 0,
    },
  },
  journald: {
    text: json((i) => ({
      __REALTIME_TIMESTAMP: `${seconds * 1e6 + i}`,
      PRIORITY: '6',
      _HOSTNAME: 'web1',
      SYSLOG_IDENTIFIER: 'sshd',
      _PID: '12',
      MESSAGE: i === 1 ? 'plain' : [...Buffer.from('\u001b[1mé')],
    })),
    title: 'JSON lines (journald)',
    records: 3,
    others: [{ message: 'plain' }, {}],
    first: { time, level: 6, host: 'web1', program: 'sshd', pid: 12, message: '\u001b[1mé' },
  },
  'postgresql json': {
    text: json((i) => ({
      timestamp: '2026-11-28 05:00:00.250 UTC',
      user: 'shop',
      dbname: 'shop',
      pid: 4711,
      line_num: i,
      error_severity: 'ERROR',
      message: 'no stock',
    })),
    title: 'JSON lines (PostgreSQL)',
    records: 3,
    others: [{ line_num: 1 }, { line_num: 2 }],
    first: {
      time,
      user: 'shop',
      dbname: 'shop',
      pid: 4711,
      line_num: 0,
      level: 'ERROR',
      message: 'no stock',
    },
  },
  'google cloud': {
    text: json((i) => ({
      insertId: 'x1',
      ...(i === 1 ? { jsonPayload: { message: 'm' } } : { textPayload: 'placed' }),
      severity: 'INFO',
      timestamp: time,
      receiveTimestamp: time,
      logName: 'projects/shop/logs/stdout',
    })),
    title: 'JSON lines (Google Cloud)',
    records: 3,
    others: [{ message: 'm', json_payload_message: 'm' }, {}],
    first: {
      time,
      insert_id: 'x1',
      message: 'placed',
      level: 'INFO',
      receive_timestamp: time,
      log_name: 'projects/shop/logs/stdout',
    },
  },
  log4j2: {
    text: json(() => ({
      instant: { epochSecond: Math.floor(seconds), nanoOfSecond: 250_000_000 },
      thread: 'main',
      level: 'ERROR',
      loggerName: 'com.shop.Order',
      message: 'x',
    })),
    title: 'JSON lines',
    records: 3,
    others: [{}, {}],
    first: { time, thread: 'main', level: 'ERROR', logger_name: 'com.shop.Order', message: 'x' },
  },
};

/** Formats of lines of text. */
export const textFormats: Readonly<Record<string, NamedFormat>> = {
  'mysql slow': {
    text: lines(
      (i) =>
        `# Time: ${time}\n# User@Host: shop[shop] @ localhost []  Id: 37\n` +
        `# Query_time: 0.64  Lock_time: 0.5 Rows_sent: ${i}  Rows_examined: 7\nSET timestamp=1795842000;\nSELECT *\n  FROM x;`,
    ),
    title: "MySQL's log of slow queries",
    records: 3,
    others: [{ rows_sent: 1 }, { rows_sent: 2 }],
    first: {
      time,
      user: 'shop',
      host: 'localhost',
      client: '',
      connection: 37,
      query_seconds: 0.64,
      lock_seconds: 0.5,
      rows_sent: 0,
      rows_examined: 7,
      query: 'SELECT *\n  FROM x;',
    },
  },
  cef: {
    text: lines(
      (i) => `<34>Nov 10 05:00:00 fw1 CEF:0|Vendor|prod\\|uct|1.5|10${i}|worm stopped|10|src=10.0.0.4`,
    ),
    title: 'CEF',
    records: 3,
    others: [{ event_class: 101 }, { event_class: 102 }],
    first: {
      time: '2026-11-10T05:00:00.000Z',
      priority: 34,
      host: 'fw1',
      version: 0,
      vendor: 'Vendor',
      product: 'prod\\|uct',
      product_version: '1.5',
      event_class: 100,
      name: 'worm stopped',
      severity: 10,
      extension: 'src=10.0.0.4',
    },
  },
  leef: {
    text: lines((i) => `Nov 10 05:00:00 fw1 LEEF:1.0|Vendor|product|1.5|login|src=10.0.0.${i}\tusrName=a`),
    title: 'LEEF',
    records: 3,
    others: [{ attributes: 'src=10.0.0.1\tusrName=a' }, { attributes: 'src=10.0.0.2\tusrName=a' }],
    first: {
      time: '2026-11-10T05:00:00.000Z',
      host: 'fw1',
      version: '1.0',
      vendor: 'Vendor',
      product: 'product',
      product_version: '1.5',
      event_id: 'login',
      attributes: 'src=10.0.0.0\tusrName=a',
    },
  },
  laravel: {
    text: lines((i) => `[2026-11-28 05:00:00] production.ERROR: order ${i}\n[stacktrace]\n#0 {main}`),
    title: 'Laravel',
    records: 3,
    others: [
      { message: 'order 1\n[stacktrace]\n#0 {main}' },
      { message: 'order 2\n[stacktrace]\n#0 {main}' },
    ],
    first: {
      time: wholeSecond,
      environment: 'production',
      level: 'ERROR',
      message: 'order 0\n[stacktrace]\n#0 {main}',
    },
  },
  php: {
    text: lines((i) => `[28-Nov-2026 05:00:00 UTC] PHP Fatal error:  no ${i}\nStack trace:\n#0 {main}`),
    title: "PHP's error log",
    records: 3,
    others: [{ message: 'no 1\nStack trace:\n#0 {main}' }, { message: 'no 2\nStack trace:\n#0 {main}' }],
    first: { time: wholeSecond, level: 'Fatal error', message: 'no 0\nStack trace:\n#0 {main}' },
  },
  rails: {
    text: lines(
      (i) =>
        `Started GET "/cart" for 10.0.0.${i} at 2026-11-28 05:00:00 +0000\nProcessing by C#show\nCompleted 200 OK in 24ms (Views: 3ms)\n\n`,
    ),
    title: 'Rails',
    records: 3,
    others: [{ remote_addr: '10.0.0.1' }, { remote_addr: '10.0.0.2' }],
    first: {
      time: wholeSecond,
      method: 'GET',
      path: '/cart',
      remote_addr: '10.0.0.0',
      message: 'Processing by C#show\nCompleted 200 OK in 24ms (Views: 3ms)',
      status: 200,
      duration_ms: 24,
    },
  },
  '.net': {
    text: lines((i) => `info: Shop.Order[14]\n      order ${i}`),
    title: ".NET's console log",
    records: 3,
    others: [{ message: 'order 1' }, { message: 'order 2' }],
    first: { level: 'info', logger: 'Shop.Order', event_id: 14, message: 'order 0' },
  },
  uvicorn: {
    text: lines((i) => `INFO:     10.0.0.4:415${i} - "GET /a HTTP/1.1" 404 Not Found`),
    title: 'uvicorn',
    records: 3,
    others: [{ remote_port: 4151 }, { remote_port: 4152 }],
    first: {
      level: 'INFO',
      remote_addr: '10.0.0.4',
      remote_port: 4150,
      method: 'GET',
      path: '/a',
      protocol: 'HTTP/1.1',
      status: 404,
    },
  },
  'vpc flow': {
    text: lines(
      (i) => `2 123456789010 eni-12 10.0.0.4 10.0.0.1 47${i} 80 6 20 6846 1795842000 1795842060 ACCEPT OK`,
    ),
    title: 'VPC flow log',
    records: 3,
    others: [{ srcport: 471 }, { srcport: 472 }],
    first: {
      time: wholeSecond,
      version: 2,
      account_id: 123456789010,
      interface_id: 'eni-12',
      srcaddr: '10.0.0.4',
      dstaddr: '10.0.0.1',
      srcport: 470,
      dstport: 80,
      protocol: 6,
      packets: 20,
      bytes: 6846,
      time_end: '2026-11-28T05:01:00.000Z',
      action: 'ACCEPT',
      log_status: 'OK',
    },
  },
  traefik: {
    text: lines(
      (i) =>
        `10.0.0.4 - - [28/Nov/2026:05:00:00 +0000] "GET /a HTTP/1.1" 500 86 "-" "curl/8" ${i} "shop@docker" "http://172.17.0.3:80" 63ms`,
    ),
    title: 'combined access log',
    records: 3,
    others: [{ request_count: 1 }, { request_count: 2 }],
    first: {
      time: wholeSecond,
      remote_addr: '10.0.0.4',
      remote_user: '-',
      method: 'GET',
      path: '/a',
      protocol: 'HTTP/1.1',
      status: 500,
      bytes: 86,
      referer: '-',
      user_agent: 'curl/8',
      request_count: 0,
      router: 'shop@docker',
      server: 'http://172.17.0.3:80',
      duration_ms: 63,
    },
  },
  'journald export': {
    text: lines(
      (i) =>
        `__CURSOR=s=${i}\n__REALTIME_TIMESTAMP=${seconds * 1e6}\n_BOOT_ID=5c\nMESSAGE=a=b c\nPRIORITY=6\nSYSLOG_IDENTIFIER=sshd\n_PID=12\n`,
    ),
    title: "journald's export",
    records: 3,
    others: [{}, {}],
    first: { time, level: 6, program: 'sshd', pid: 12, message: 'a=b c' },
  },
  kernel: {
    text: lines((i) => `[    ${i}.599468] usb 1-1: new device`),
    title: "the kernel's messages",
    records: 3,
    others: [{ uptime: 1.599468 }, { uptime: 2.599468 }],
    first: { uptime: 0.599468, message: 'usb 1-1: new device' },
  },
  log4net: {
    text: lines((i) => `2026-11-28 05:00:00,250 [${5 + i}] INFO  Shop.Order [(null)] - started`),
    title: 'lines that begin with a time',
    records: 3,
    others: [{ thread: 6 }, { thread: 7 }],
    first: { time, thread: 5, level: 'INFO', logger: 'Shop.Order', context: '(null)', message: 'started' },
  },
  'semicolons without a header': {
    text: lines((i) => `28.11.2026;05:00:0${i};41,5;Text`),
    title: 'lines that begin with a time',
    records: 3,
    others: [{ time: '2026-11-28T05:00:01.000Z' }, { time: '2026-11-28T05:00:02.000Z' }],
    first: { time: wholeSecond, message: '41,5;Text' },
  },
  'kernel with dates': {
    text: lines((i) => `[Sat Nov 28 05:00:0${i} 2026] usb 1-1: new device`),
    title: 'lines that begin with a time',
    records: 3,
    others: [{ time: '2026-11-28T05:00:01.000Z' }, { time: '2026-11-28T05:00:02.000Z' }],
    first: { time: wholeSecond, logger: 'usb 1-1', message: 'new device' },
  },
  'kernel with full times': {
    text: lines((i) => `2026-11-28T05:00:0${i},250000+00:00 usb 1-1: new device`),
    title: 'lines that begin with a time',
    records: 3,
    others: [{ time: '2026-11-28T05:00:01.250Z' }, { time: '2026-11-28T05:00:02.250Z' }],
    first: { time, logger: 'usb 1-1', message: 'new device' },
  },
  redis: {
    text: `${lines((i) => `1:M 28 Nov 2026 05:00:0${i}.250 * Ready ${i}`)}  _._\n1:signal-handler (1795842003) Received SIGTERM\n`,
    title: 'Redis',
    records: 3,
    others: [
      { time: '2026-11-28T05:00:01.250Z', message: 'Ready 1' },
      {
        time: '2026-11-28T05:00:02.250Z',
        message: 'Ready 2\n  _._\n1:signal-handler (1795842003) Received SIGTERM',
      },
    ],
    first: { time, pid: 1, role: 'M', level: '*', message: 'Ready 0' },
  },
  clickhouse: {
    text: lines(
      (i) =>
        `2026.11.28 05:00:00.250000 [ 7${i} ] {${i === 1 ? 'b4c1' : ''}} <Error> executeQuery: Code: 60\n\n1. main`,
    ),
    title: 'ClickHouse',
    records: 3,
    others: [{ thread: 71, query_id: 'b4c1' }, { thread: 72 }],
    first: {
      time,
      thread: 70,
      query_id: '',
      level: 'Error',
      logger: 'executeQuery',
      message: 'Code: 60\n\n1. main',
    },
  },
  kafka: {
    text: lines(
      (i) =>
        `[2026-11-28 05:00:00,250] WARN [Broker ${i}]: late (x) (kafka.server.Log)${i === 1 ? '\njava.io.IOException\n\tat a.b(C.java:1)' : ''}`,
    ),
    title: 'Kafka',
    records: 3,
    others: [
      { message: '[Broker 1]: late (x)', trace: 'java.io.IOException\n\tat a.b(C.java:1)' },
      { message: '[Broker 2]: late (x)' },
    ],
    first: { time, level: 'WARN', message: '[Broker 0]: late (x)', logger: 'kafka.server.Log' },
  },
  "mongodb's text": {
    text: lines((i) => `2026-11-28T05:00:00.250+0000 I ${i === 1 ? '-       ' : 'NETWORK '} [conn${i}] end`),
    title: "MongoDB's text",
    records: 3,
    others: [{ component: '-', context: 'conn1' }, { context: 'conn2' }],
    first: { time, level: 'I', component: 'NETWORK', context: 'conn0', message: 'end' },
  },
  nagios: {
    text: lines(
      (i) => `[179584200${i}] ${i === 2 ? 'Warning: code 127' : `SERVICE ALERT: web${i};HTTP;CRITICAL`}`,
    ),
    title: 'Nagios',
    records: 3,
    others: [
      { time: '2026-11-28T05:00:01.000Z', message: 'web1;HTTP;CRITICAL' },
      { time: '2026-11-28T05:00:02.000Z', type: undefined, message: 'Warning: code 127' },
    ],
    first: { time: wholeSecond, type: 'SERVICE ALERT', message: 'web0;HTTP;CRITICAL' },
  },
  'the development server of django': {
    text: lines((i) => `[28/Nov/2026 05:00:0${i}] "GET /admin/${i} HTTP/1.1" 30${i} 59`),
    title: "Django's development server",
    records: 3,
    others: [
      { time: '2026-11-28T05:00:01.000Z', path: '/admin/1', status: 301 },
      { time: '2026-11-28T05:00:02.000Z', path: '/admin/2', status: 302 },
    ],
    first: {
      time: wholeSecond,
      method: 'GET',
      path: '/admin/0',
      protocol: 'HTTP/1.1',
      status: 300,
      bytes: 59,
    },
  },
  cassandra: {
    text: lines(
      (i) => `INFO  [${i === 0 ? 'main' : `Flush:${i}`}] 2026-11-28 05:00:00,250 Lib.java:18${i} - Unable`,
    ),
    title: 'lines that begin with a time',
    records: 3,
    others: [
      { thread: 'Flush:1', caller: 'Lib.java:181' },
      { thread: 'Flush:2', caller: 'Lib.java:182' },
    ],
    first: { time, level: 'INFO', thread: 'main', caller: 'Lib.java:180', message: 'Unable' },
  },
  'syslog of rfc 5424 with a missing time': {
    text: lines((i) => `<34>1 ${i === 2 ? '-' : time} web1 su ${i === 1 ? '-' : '12'} - - failed ${i}`),
    title: 'syslog (RFC 5424)',
    records: 3,
    others: [
      { pid: undefined, message: 'failed 1' },
      { time: undefined, message: 'failed 2' },
    ],
    first: {
      time,
      priority: 34,
      version: 1,
      host: 'web1',
      program: 'su',
      pid: 12,
      msgid: '-',
      structured_data: '-',
      message: 'failed 0',
    },
  },
  'mostly json': {
    text: lines((i) => (i === 1 ? 'Listening on port 8080' : JSON.stringify({ time, msg: 'a', n: i }))),
    title: 'JSON lines',
    records: 2,
    others: [{ n: 2 }],
    first: { time, message: 'a', n: 0 },
  },
};

const order = (i: number): object => ({ ts: '2026-11-28T05:00:00.100Z', level: 'info', msg: `order ${i}` });
const logged = { logged_at: '2026-11-28T05:00:00.100Z', level: 'info', message: 'order 0' };
const trace = (i: number): string[] => [
  `2026-11-28 05:00:00,100 ERROR [main] com.shop.Order - failed ${i}`,
  'java.lang.IllegalStateException: no stock',
  '\tat com.shop.Order.place(Order.java:42)',
];

/** Formats of containers, and values of JSON that do not end with their line. */
export const wrappedFormats: Readonly<Record<string, NamedFormat>> = {
  'docker with json': {
    text: json((i) => ({
      log: `${JSON.stringify(order(i))}\n`,
      stream: 'stdout',
      attrs: { tag: 'web' },
      time,
    })),
    title: 'Docker: JSON lines',
    records: 3,
    others: [{ message: 'order 1' }, { message: 'order 2' }],
    first: { time, stream: 'stdout', ...logged, attrs_tag: 'web' },
  },
  'docker with json and a text': {
    text: json((i) => ({
      log: i === 0 ? 'Listening\n' : `${JSON.stringify(order(i))}\n`,
      stream: 'stdout',
      time,
    })),
    title: 'Docker: JSON lines',
    records: 3,
    others: [
      { message: 'order 1', logged_at: '2026-11-28T05:00:00.100Z', level: 'info' },
      { message: 'order 2', logged_at: '2026-11-28T05:00:00.100Z', level: 'info' },
    ],
    first: { time, stream: 'stdout', message: 'Listening' },
  },
  'docker with parts of a line': {
    text: json((i) => ({ log: ['one ', 'line\n', 'another\n'][i], stream: 'stderr', time })),
    title: 'Docker: lines of text',
    records: 2,
    others: [{ message: 'another' }],
    first: { time, stream: 'stderr', message: 'one line' },
  },
  'cri with json': {
    text: lines((i) => `${time} stdout F ${JSON.stringify(order(i))}`),
    title: 'CRI: JSON lines',
    records: 3,
    others: [{ message: 'order 1' }, { message: 'order 2' }],
    first: { time, stream: 'stdout', ...logged },
  },
  'cri with logfmt': {
    text: lines((i) => `${time} stdout F level=info msg="order ${i}" n=${i}`),
    title: 'CRI: logfmt',
    records: 3,
    others: [
      { message: 'order 1', n: 1 },
      { message: 'order 2', n: 2 },
    ],
    first: { time, stream: 'stdout', level: 'info', message: 'order 0', n: 0 },
  },
  'cri with traces, between lines of the other stream': {
    text: `${trace(0)
      .flatMap((line) => [`${time} stderr F ${line}`, `${time} stdout F ${trace(1)[0]!}`])
      .slice(0, -1)
      .join('\n')}\n`,
    title: 'CRI: lines that begin with a time',
    records: 3,
    others: [
      { stream: 'stdout', message: 'failed 1' },
      { stream: 'stdout', message: 'failed 1' },
    ],
    first: {
      time,
      stream: 'stderr',
      logged_at: '2026-11-28T05:00:00.100Z',
      level: 'ERROR',
      thread: 'main',
      logger: 'com.shop.Order',
      message: trace(0)
        .join('\n')
        .replace(/^.* - /, ''),
    },
  },
  'cri with parts of a line': {
    text: `${time} stdout P one \n${time} stdout F line\n${time} stdout F another\n`,
    title: 'CRI: lines of text',
    records: 2,
    others: [{ message: 'another' }],
    first: { time, stream: 'stdout', message: 'one line' },
  },
  'an array over lines': {
    text: JSON.stringify([0, 1, 2].map(order), null, 1),
    title: 'JSON values',
    records: 3,
    others: [{ message: 'order 1' }, { message: 'order 2' }],
    first: { time: logged.logged_at, level: 'info', message: 'order 0' },
  },
  'objects over lines': {
    text: [0, 1, 2].map((i) => JSON.stringify(order(i), null, 2)).join('\n'),
    title: 'JSON values',
    records: 3,
    others: [{ message: 'order 1' }, { message: 'order 2' }],
    first: { time: logged.logged_at, level: 'info', message: 'order 0' },
  },
  'objects on one line': {
    text: `${[0, 1, 2].map((i) => JSON.stringify(order(i))).join(' ')}\n`,
    title: 'JSON values',
    records: 3,
    others: [{ message: 'order 1' }, { message: 'order 2' }],
    first: { time: logged.logged_at, level: 'info', message: 'order 0' },
  },
  cloudtrail: {
    text: JSON.stringify({
      Records: [0, 1, 2].map((i) => ({ eventVersion: '1.08', eventTime: time, size: i })),
    }),
    title: 'JSON values',
    records: 3,
    others: [{ size: 1 }, { size: 2 }],
    first: { time, event_version: '1.08', size: 0 },
  },
  otlp: {
    text: json((i) => ({
      resourceLogs: [
        {
          resource: { attributes: [{ key: 'service.name', value: { stringValue: 'shop' } }] },
          scopeLogs: [
            {
              scope: { name: 'order' },
              logRecords: [
                {
                  timeUnixNano: `${seconds * 1000}000000`,
                  severityNumber: 17,
                  severityText: 'ERROR',
                  body: { stringValue: `order ${i}` },
                  attributes: [{ key: 'order.id', value: { intValue: '7' } }],
                  traceId: '3ff2',
                  spanId: '5971',
                },
              ],
            },
          ],
        },
      ],
    })),
    title: "OpenTelemetry's log records",
    records: 3,
    others: [{ message: 'order 1' }, { message: 'order 2' }],
    first: {
      time,
      level: 'ERROR',
      severity_number: 17,
      message: 'order 0',
      trace_id: '3ff2',
      span_id: '5971',
      scope_name: 'order',
      resource_service_name: 'shop',
      order_id: 7,
    },
  },
};

/** Formats of tables. */
export const tableFormats: Readonly<Record<string, NamedFormat>> = {
  'csv with semicolons and decimal commas': {
    text: `Datum;Uhrzeit;Wert;Text\n${lines((i) => `28.11.2026;05:00:00;17,${i + 1};"a;b"`)}`,
    title: 'table with a header',
    records: 3,
    others: [{ wert: 17.2 }, { wert: 17.3 }],
    first: { time: wholeSecond, wert: 17.1, text: 'a;b' },
  },
  iis: {
    text: `#Software: IIS\n#Fields: date time cs-method sc-status cs(Referer)\n${lines((i) => `2026-11-28 05:00:00 GET 20${i} -`)}`,
    title: 'W3C extended log',
    records: 3,
    others: [{ sc_status: 201 }, { sc_status: 202 }],
    first: { time: wholeSecond, cs_method: 'GET', sc_status: 200 },
  },
  cloudfront: {
    text: `#Version: 1.0\n#Fields: date time sc-bytes x-edge-location\n${lines((i) => `2026-11-28\t05:00:00\t${i + 7}\tLAX1`)}`,
    title: 'W3C extended log',
    records: 3,
    others: [{ sc_bytes: 8 }, { sc_bytes: 9 }],
    first: { time: wholeSecond, sc_bytes: 7, x_edge_location: 'LAX1' },
  },
  zeek: {
    text: `#separator \\x09\n#unset_field\t-\n#fields\tts\tuid\torig_bytes\n${lines((i) => `${seconds}\tC${i}\t${i === 1 ? '-' : '40'}`)}`,
    title: "Zeek's log",
    records: 3,
    others: [{ uid: 'C1', orig_bytes: undefined }, { uid: 'C2' }],
    first: { time, uid: 'C0', orig_bytes: 40 },
  },
  'vpc flow with a header': {
    text: `version interface-id srcaddr dstport start action\n${lines((i) => `2 eni-12 10.0.0.${i} ${i === 1 ? '-' : 80} 1795842000 ACCEPT`)}`,
    title: 'table with a header',
    records: 3,
    others: [{ srcaddr: '10.0.0.1', dstport: undefined }, { srcaddr: '10.0.0.2' }],
    first: {
      time: wholeSecond,
      version: 2,
      interface_id: 'eni-12',
      srcaddr: '10.0.0.0',
      dstport: 80,
      action: 'ACCEPT',
    },
  },
  'events of windows, without the name of the last column': {
    text: `Level,Date and Time,Source,Event ID,Task Category\r\n${lines((i) => `Error,11/28/2026 5:00:00 AM,Disk,${i + 7},None,"The device ""D:""\r\nfailed"\r`)}`,
    title: 'table with a header',
    records: 3,
    others: [{ event_id: 8 }, { event_id: 9 }],
    first: {
      time: wholeSecond,
      level: 'Error',
      source: 'Disk',
      event_id: 7,
      task_category: 'None',
      message: 'The device "D:"\r\nfailed',
    },
  },
  'postgresql csvlog': {
    text: lines(
      (i) =>
        `2026-11-28 05:00:00.250 UTC,"shop","shop",4546,"10.0.0.4:4711",cf385f72.2ad,${i},"SELECT",2026-11-28 05:00:00 UTC,3/42,0,ERROR,42P01,` +
        `"relation ""x"" is missing",,,,,,"SELECT *\nFROM x",15,,"psql","client backend",,0`,
    ),
    title: "PostgreSQL's csvlog",
    records: 3,
    others: [{ session_line_num: 1 }, { session_line_num: 2 }],
    first: {
      time,
      user: 'shop',
      database: 'shop',
      pid: 4546,
      connection_from: '10.0.0.4:4711',
      session_id: 'cf385f72.2ad',
      session_line_num: 0,
      command_tag: 'SELECT',
      session_start_time: wholeSecond,
      virtual_transaction_id: '3/42',
      transaction_id: 0,
      level: 'ERROR',
      sql_state_code: '42P01',
      message: 'relation "x" is missing',
      query: 'SELECT *\nFROM x',
      query_pos: 15,
      application_name: 'psql',
      backend_type: 'client backend',
      query_id: 0,
    },
  },
};
