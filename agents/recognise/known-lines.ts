import type { LineShape } from './candidate.js';

const iso = String.raw`\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})`;
const stamp = String.raw`[A-Z][a-z]{2} [ \d]?\d(?: \d{4})? \d{2}:\d{2}:\d{2}(?:\.\d+)?`;
const rest = '(?P<message>.*)$';

/** A program's name, which may be of two words, with its number, as syslog has it. */
const program = String.raw`(?P<program>[^:\[\s]+(?: [\w.-]+)?)(?:\[(?P<pid>\d+)\])?(?: \([^)]*\))?`;

const postgresTime = String.raw`\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(?:\.\d+)? (?:[A-Z]{3,5}|[+-]\d{2,4})`;
const postgresLevel =
  '(?P<level>LOG|DEBUG[1-5]|INFO|NOTICE|WARNING|ERROR|FATAL|PANIC|DETAIL|HINT|QUERY|CONTEXT|LOCATION|STATEMENT)';

/** Formats that are known by themselves, whose parts have names of their own. */
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
    regex: `^(?:<(?P<priority>\\d{1,3})>)?(?P<time>${iso}) (?P<host>[A-Za-z0-9][\\w.-]*) ${program}: ${rest}`,
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
    start: String.raw`^[A-Z][a-z]{2} \d{1,2}, \d{4} \d{1,2}:\d{2}:\d{2} [AP]M `,
    regex:
      String.raw`(?s)^(?P<time>[A-Z][a-z]{2} \d{1,2}, \d{4} \d{1,2}:\d{2}:\d{2} [AP]M) (?P<logger>\S+)(?: (?P<method>\S+))?` +
      String.raw`\n(?P<level>[A-Z]+): ${rest}`,
  },
  {
    title: 'klog',
    start: String.raw`^[IWEF]\d{4} \d{2}:\d{2}:\d{2}`,
    regex: String.raw`(?s)^(?P<level>[IWEF])(?P<time>\d{4} \d{2}:\d{2}:\d{2}\.\d+) +(?P<pid>\d+) (?P<caller>[^\]]*)\] ${rest}`,
  },
  {
    title: 'lines of a container',
    regex: `^(?P<time>${iso}) (?P<stream>stdout|stderr) (?P<flag>[FP])(?: ${rest.slice(0, -1)})?$`,
  },
  {
    title: 'Redis',
    regex: String.raw`^(?P<pid>\d+):(?P<role>[XCSM]) (?P<time>\d{1,2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2}\.\d+) (?P<level>[.*#-]) ${rest}`,
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
];
