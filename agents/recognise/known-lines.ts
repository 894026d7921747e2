import type { LineShape } from './field-names.js';

const iso = String.raw`\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})`;
const stamp = String.raw`[A-Z][a-z]{2} [ \d]?\d(?: \d{4})? \d{2}:\d{2}:\d{2}(?:\.\d+)?`;
const rest = '(?P<message>.*)$';

/** As syslog writes it; the kernel's messages have a comma. */
const syslogIso = iso.replace('[.,]', String.raw`\.`);

/** A program's name, which may have two words, with its process id, as in syslog. */
const program = String.raw`(?P<program>[^:\[\s]+(?: [\w.-]+)?)(?:\[(?P<pid>\d+)\])?(?: \([^)]*\))?`;

/** Text in a part of CEF's header, with `\\|` for the character that separates the parts. */
const cefText = String.raw`(?:[^|\\]|\\.)*`;

const postgresTime = String.raw`\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(?:\.\d+)? (?:[A-Z]{3,5}|[+-]\d{2,4})`;
const postgresLevel =
  '(?P<level>LOG|DEBUG[1-5]|INFO|NOTICE|WARNING|ERROR|FATAL|PANIC|DETAIL|HINT|QUERY|CONTEXT|LOCATION|STATEMENT)';

/** The request, up to the URL and protocol, as written by Amazon's load balancers, Envoy, S3 and HAProxy. */
const request = String.raw`(?:(?P<method>[A-Z]+) (?P<path>[^ "]+)(?: (?P<protocol>[^ "]+))?|(?P<request>[^"]*))`;

const haproxy =
  String.raw`(?P<remote_addr>\S+):(?P<remote_port>\d+) \[(?P<TIME>[^\]]+)\] (?P<frontend>\S+) (?P<backend>[^/\s]+)/(?P<server>\S+) ` +
  String.raw`(?P<request_ms>-?\d+)/(?P<queue_ms>-?\d+)/(?P<connect_ms>-?\d+)/(?P<response_ms>-?\d+)/\+?(?P<total_ms>\d+) ` +
  String.raw`(?P<status>-?\d+) \+?(?P<bytes>\d+) (?P<request_cookie>\S+) (?P<response_cookie>\S+) (?P<termination>\S+) ` +
  String.raw`(?P<connections>[\d/+]+) (?P<queues>[\d/]+) (?:\{(?P<captured>.*)\} )?"${request}"?`;

/** Formats that are recognised as such, whose parts have names of their own. */
export const knownShapes: readonly LineShape[] = [
  {
    title: 'syslog (RFC 5424)',
    regex:
      String.raw`^<(?P<priority>\d{1,3})>(?P<version>\d{1,2}) (?P<time>\S+) (?P<host>\S+) (?P<program>\S+) (?P<pid>\S+) (?P<msgid>\S+) ` +
      String.raw`(?P<structured_data>-|(?:\[(?:[^\]\\]|\\.)*\])+)(?: (?:\x{FEFF})?(?P<message>.*))?$`,
  },
  {
    title: 'syslog (RFC 3164)',
    regex: `^(?:<(?P<priority>\\d{1,3})>)?(?P<time>${stamp}) (?P<host>\\S+) (?:${program}: )?${rest}`,
  },
  {
    title: 'syslog with full times',
    regex: `^(?:<(?P<priority>\\d{1,3})>)?(?P<time>${syslogIso}) (?P<host>[A-Za-z0-9][\\w.-]*) (?:${program}: )?${rest}`,
    needs: 'program',
  },
  {
    title: "Apache's error log",
    regex:
      String.raw`^\[(?P<time>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2}(?:\.\d+)? \d{4})\] \[(?:(?P<module>[^:\]]*):)?(?P<level>[a-z0-9]+)\]` +
      String.raw`(?: \[pid (?P<pid>\d+)(?::tid (?P<tid>\d+))?\])?(?: \[client (?P<client>[^\]]*)\])? ${rest}`,
  },
  {
    title: "nginx's error log",
    regex:
      String.raw`^(?P<time>\d{4}/\d{2}/\d{2} \d{2}:\d{2}:\d{2}) \[(?P<level>[a-z]+)\] (?P<pid>\d+)#(?P<tid>\d+): (?:\*(?P<connection>\d+) )?` +
      rest,
  },
  {
    title: 'PostgreSQL',
    start: `^${postgresTime} `,
    regex:
      String.raw`(?s)^(?P<time>${postgresTime}) \[(?P<pid>\d+)(?:-(?P<line>\d+))?\]:? (?:\[(?P<session_line>\d+)-\d+\] )?` +
      String.raw`(?:user=(?P<user>[^,]*),db=(?P<database>[^,]*),app=(?P<application>[^,]*),client=(?P<client>\S*) |` +
      String.raw`(?P<login>[^@ ]*@\S*) )?${postgresLevel}: +${rest}`,
  },
  {
    title: 'PostgreSQL with levels behind a prefix',
    start: `^${postgresTime} `,
    regex: String.raw`(?s)^(?P<time>${postgresTime}) (?P<prefix>.*?) ?${postgresLevel}: +${rest}`,
  },
  {
    title: 'java.util.logging',
    start: String.raw`^[A-Z][a-z]{2} \d{1,2}, \d{4} \d{1,2}:\d{2}:\d{2}[ \x{202F}][AP]M `,
    regex:
      String.raw`(?s)^(?P<time>[A-Z][a-z]{2} \d{1,2}, \d{4} \d{1,2}:\d{2}:\d{2}[ \x{202F}][AP]M) (?P<logger>\S+)(?: (?P<method>\S+))?` +
      String.raw`\n(?P<level>[A-Z]+): ${rest}`,
  },
  {
    title: 'klog',
    start: String.raw`^[IWEF]\d{4} \d{2}:\d{2}:\d{2}`,
    regex: String.raw`(?s)^(?P<level>[IWEF])(?P<time>\d{4} \d{2}:\d{2}:\d{2}\.\d+) +(?P<pid>\d+) (?P<caller>[^\]]*)\] ${rest}`,
  },
  {
    title: "MySQL's error log",
    regex: `^(?P<time>${iso}) (?P<thread_id>\\d+) \\[(?P<level>\\w+)\\] (?:\\[(?P<code>MY-\\d+)\\] \\[(?P<subsystem>\\w+)\\] )?${rest}`,
  },
  {
    title: "MySQL's log of slow queries",
    start: '^# Time: ',
    regex:
      String.raw`(?s)^# Time: (?P<time>\S+)\n# User@Host: (?P<user>[^\[\s]*)\[[^\]]*\] @ +(?P<host>\S*) *\[(?P<client>[^\]]*)\](?: +Id: +(?P<connection>\d+))?` +
      String.raw`\n# Query_time: (?P<query_seconds>[\d.]+) +Lock_time: (?P<lock_seconds>[\d.]+) +Rows_sent: (?P<rows_sent>\d+) +Rows_examined: (?P<rows_examined>\d+)[^\n]*` +
      String.raw`\n(?:use (?P<database>[^;\n]*);\n)?(?:SET timestamp=\d+;\n)?(?P<query>.*)$`,
  },
  {
    title: 'CEF',
    regex:
      `^(?:<(?P<priority>\\d{1,3})>)?(?P<time>${stamp}|${iso}) (?P<host>\\S+) ` +
      String.raw`CEF: ?(?P<version>\d+)\|(?P<vendor>${cefText})\|(?P<product>${cefText})\|(?P<product_version>${cefText})\|(?P<event_class>${cefText})\|(?P<name>${cefText})\|(?P<severity>${cefText})\|(?P<extension>.*)$`,
  },
  {
    title: 'LEEF',
    regex:
      `^(?:<(?P<priority>\\d{1,3})>)?(?P<time>${stamp}|${iso}) (?P<host>\\S+) ` +
      String.raw`LEEF: ?(?P<version>[\d.]+)\|(?P<vendor>[^|]*)\|(?P<product>[^|]*)\|(?P<product_version>[^|]*)\|(?P<event_id>[^|]*)\|(?P<attributes>.*)$`,
  },
  {
    title: 'Laravel',
    start: String.raw`^\[\d{4}-\d{2}-\d{2}[T ]`,
    regex: String.raw`(?s)^\[(?P<time>\d{4}-\d{2}-\d{2}[^\]]+)\] (?P<environment>[\w-]+)\.(?P<level>[A-Z]+): ${rest}`,
  },
  {
    title: "PHP's error log",
    start: String.raw`^\[\d{2}-[A-Z][a-z]{2}-\d{4} `,
    regex: String.raw`(?s)^\[(?P<time>\d{2}-[A-Z][a-z]{2}-\d{4} [^\]]+)\] (?:PHP (?P<level>[A-Z][A-Za-z -]*): +)?${rest}`,
    needs: 'level',
  },
  {
    title: 'Rails',
    start: '^Started [A-Z]+ "',
    regex:
      String.raw`(?s)^Started (?P<method>[A-Z]+) "(?P<path>[^"]*)" for (?P<remote_addr>\S+) at (?P<time>[^\n]+)` +
      String.raw`(?:\n(?P<message>.*?(?:\nCompleted (?P<status>\d{3}) [^\n]* in (?P<duration_ms>\d+)ms.*)?))?$`,
  },
  {
    title: ".NET's console log",
    start: '^(?:trce|dbug|info|warn|fail|crit): ',
    regex: String.raw`(?s)^(?P<level>trce|dbug|info|warn|fail|crit): (?P<logger>[^\[\s]+)\[(?P<event_id>\d+)\]\n\s*${rest}`,
  },
  {
    title: 'uvicorn',
    regex:
      String.raw`^(?P<level>[A-Z]+): +(?:(?P<remote_addr>\S+):(?P<remote_port>\d+) - "(?P<method>[A-Z]+) (?P<path>\S+) (?P<protocol>HTTP/[\d.]+)" ` +
      String.raw`(?P<status>\d{3})(?: [A-Za-z' -]*)?|(?P<message>.*))$`,
    needs: 'status',
  },
  {
    title: 'VPC flow log',
    regex:
      String.raw`^(?P<version>\d) (?P<account_id>\d+|unknown) (?P<interface_id>eni-\w+) (?P<srcaddr>\S+) (?P<dstaddr>\S+) (?P<srcport>\S+) (?P<dstport>\S+) (?P<protocol>\S+) ` +
      String.raw`(?P<packets>\S+) (?P<bytes>\S+) (?P<time>\d+) (?P<time_end>\d+) (?P<action>\S+) (?P<log_status>\S+)$`,
  },
  {
    // Fields come in any order; of a repeated one, the last counts.
    title: "journald's export",
    start: '^__CURSOR=',
    regex:
      String.raw`(?s)^__CURSOR=[^\n]*\n(?:(?:__REALTIME_TIMESTAMP=(?P<time>\d+)|PRIORITY=(?P<level>\d)|_HOSTNAME=(?P<host>[^\n]*)|SYSLOG_IDENTIFIER=(?P<program>[^\n]*)|` +
      String.raw`_PID=(?P<pid>\d+)|_SYSTEMD_UNIT=(?P<unit>[^\n]*)|MESSAGE=(?P<message>[^\n]*)|[^\n]*)(?:\n|$))*$`,
  },
  {
    title: "the kernel's messages",
    regex: `^(?:<(?P<priority>\\d{1,3})>)?\\[ *(?P<uptime>\\d+\\.\\d{6})\\] ${rest}`,
    note: [
      'the times are seconds since the machine started (uptime), and records are',
      'ordered by their arrival. Full times are in the output of',
      '`dmesg --time-format iso` and of `journalctl -k -o json`',
    ],
  },
  {
    title: 'Redis',
    // The logo continues the first record.
    start: String.raw`^\d+:[XCSM] \d`,
    regex: String.raw`(?s)^(?P<pid>\d+):(?P<role>[XCSM]) (?P<time>\d{1,2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2}\.\d+) (?P<level>[.*#-]) ${rest}`,
  },
  {
    title: 'ClickHouse',
    start: String.raw`^\d{4}\.\d{2}\.\d{2} \d{2}:\d{2}:\d{2}`,
    regex:
      String.raw`(?s)^(?P<time>\d{4}\.\d{2}\.\d{2} \d{2}:\d{2}:\d{2}(?:\.\d+)?) \[ (?P<thread>\d+) \] \{(?P<query_id>[^}]*)\} ` +
      `<(?P<level>\\w+)> (?P<logger>[^:]+): ${rest}`,
  },
  {
    title: 'Kafka',
    start: String.raw`^\[\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2},\d{3}\] [A-Z]`,
    regex:
      String.raw`(?s)^\[(?P<time>\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2},\d{3})\] (?P<level>[A-Z]+) +(?P<message>.*?)` +
      String.raw` \((?P<logger>[\w.$-]+)\)(?:\n(?P<trace>.*))?$`,
  },
  {
    title: "MongoDB's text",
    regex: `^(?P<time>${iso}) (?P<level>[DIWEF]\\d?) +(?P<component>[A-Z_]+|-) +\\[(?P<context>[^\\]]*)\\] ${rest}`,
  },
  {
    title: 'Nagios',
    regex: String.raw`^\[(?P<time>\d{9,10})\] (?:(?P<type>[A-Z][A-Z ]+[A-Z]): )?${rest}`,
    needs: 'type',
  },
  {
    title: "Django's development server",
    regex: String.raw`^\[(?P<time>\d{2}/[A-Z][a-z]{2}/\d{4} \d{2}:\d{2}:\d{2})\] "${request}" (?P<status>\d{3}) (?P<bytes>\d+)$`,
  },
  {
    title: 'Squid access log',
    regex:
      String.raw`^(?P<time>\d{9,10}\.\d{3}) +(?P<elapsed>\d+) (?P<remote_addr>\S+) (?P<result>[A-Z_]+)/(?P<status>\d+) (?P<bytes>\d+) ` +
      String.raw`(?P<method>\S+) (?P<url>\S+) (?P<remote_user>\S+) (?P<hierarchy>[^/ ]+)/(?P<peer>\S+)(?: (?P<content_type>\S+))?$`,
  },
  {
    title: "Ruby's logger",
    start: String.raw`^[DIWEFUA], \[\d{4}-`,
    regex: String.raw`(?s)^[DIWEFUA], \[(?P<time>\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d+) #(?P<pid>\d+)\] +(?P<level>[A-Z]+) -- (?P<program>[^:]*): ${rest}`,
  },
  {
    title: 'HAProxy',
    regex: `^(?:<(?P<priority>\\d{1,3})>)?(?P<time>${stamp}|${iso}) (?P<host>\\S+) (?P<program>[^:\\[\\s]+)(?:\\[(?P<pid>\\d+)\\])?: (?:${haproxy.replace('TIME', 'time_accepted')}|(?P<message>.*))$`,
    needs: 'frontend',
  },
  { title: 'HAProxy without syslog', regex: `^${haproxy.replace('TIME', 'time')}$` },
  {
    title: 'Cisco',
    regex:
      `^(?:<(?P<priority>\\d{1,3})>)?(?P<time>${stamp})(?: (?P<host>[\\w.:-]*\\w))?(?: ?: | )(?:(?P<sequence>\\d+): )?` +
      `(?:[*.]?${stamp}(?: [A-Z]{3,5})?: )?%(?P<facility>[A-Z][A-Z0-9_-]*)-(?P<severity>[0-7])-(?P<mnemonic>\\w+): ${rest}`,
  },
  {
    title: 'Amazon load balancer log',
    regex:
      String.raw`^(?:(?P<type>[a-z0-9]{2,8}) )?(?P<time>\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d+Z) (?P<balancer>\S+) (?P<remote_addr>\S+):(?P<remote_port>\d+) ` +
      String.raw`(?P<target>\S+) (?P<request_seconds>-?[\d.]+) (?P<target_seconds>-?[\d.]+) (?P<response_seconds>-?[\d.]+) ` +
      String.raw`(?P<status>\S+) (?P<target_status>\S+) (?P<received_bytes>\d+) (?P<bytes>\d+) "${request}" "(?P<user_agent>[^"]*)" ` +
      String.raw`(?P<tls_cipher>\S+) (?P<tls_version>\S+)(?: (?P<target_group>\S+) "(?P<trace_id>[^"]*)")?(?: (?P<extra>.*))?$`,
  },
  {
    title: 'S3 access log',
    regex:
      String.raw`^(?P<owner>[0-9a-f]{64}) (?P<bucket>\S+) \[(?P<time>[^\]]+)\] (?P<remote_addr>\S+) (?P<requester>\S+) (?P<request_id>\S+) ` +
      String.raw`(?P<operation>\S+) (?P<key>\S+) (?:"${request}"|-) (?P<status>\S+) (?P<error>\S+) (?P<bytes>\S+) (?P<object_bytes>\S+) ` +
      String.raw`(?P<total_ms>\S+) (?P<turnaround_ms>\S+) "(?P<referer>[^"]*)" "(?P<user_agent>[^"]*)"(?: (?P<extra>.*))?$`,
  },
  {
    title: 'Envoy',
    regex:
      String.raw`^\[(?P<time>\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d+Z)\] "${request}" (?P<status>\d+) (?P<flags>\S+) ` +
      String.raw`(?:(?P<details>\S+) (?P<termination>\S+) "(?P<transport_failure>[^"]*)" )?(?P<received_bytes>\d+) (?P<bytes>\d+) ` +
      String.raw`(?P<duration_ms>\d+) (?P<upstream_ms>\S+) "(?P<forwarded_for>[^"]*)" "(?P<user_agent>[^"]*)" "(?P<request_id>[^"]*)" ` +
      String.raw`"(?P<authority>[^"]*)" "(?P<upstream>[^"]*)"(?: (?P<extra>.*))?$`,
  },
  {
    title: 'uWSGI',
    regex:
      String.raw`^\[pid: (?P<pid>\d+)\|app: (?P<app>[\d-]+)\|req: (?P<count>[^\]]*)\] (?P<remote_addr>\S*) \((?P<remote_user>[^)]*)\) \{[^}]*\} ` +
      String.raw`\[(?P<time>[^\]]+)\] (?P<method>[A-Z]+) (?P<path>\S+) => generated (?P<bytes>\d+) bytes in (?P<duration_ms>\d+) msecs` +
      String.raw`(?: \((?P<protocol>\S+) (?P<status>\d{3})\))?(?: (?P<extra>.*))?$`,
  },
  {
    title: "Linux's audit log",
    regex: String.raw`^(?:node=(?P<node>\S+) )?type=(?P<type>\S+) msg=audit\((?P<time>\d+\.\d+):(?P<serial>\d+)\): ?${rest}`,
  },
  {
    title: "Python's logging without times",
    start: '^(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):',
    regex: `(?s)^(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL):(?P<logger>[^:\\s]+):${rest}`,
  },
];
