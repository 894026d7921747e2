/**
 * Requests that are malformed, or that two parsers could read as different requests, by the sections of RFC 9112. In their bytes,
 * `{target}` is replaced by the target of a query, and `{next}` by another complete request, which must never be answered if the first is
 * refused.
 */
export interface MalformedCase {
  readonly what: string;
  readonly bytes: string;
  /** The libraries may differ where the RFC allows it. */
  readonly verdict: Verdict | { readonly node: Verdict; readonly uws: Verdict };
}

/** `refused`: at most one answer, a refusal, and then the connection is closed. `answered`: the request and the next one are answered. */
export type Verdict = 'refused' | 'answered';

const host = 'Host: x\r\n';
const requestLine = 'GET {target} HTTP/1.1\r\n';

function refused(what: string, bytes: string): MalformedCase {
  return { what, bytes, verdict: 'refused' };
}

function named(byte: number): string {
  return `0x${byte.toString(16).padStart(2, '0')}`;
}

/** All control characters except those that end lines. */
const controls = [...Array.from({ length: 32 }, (_, i) => i), 0x7f].filter(
  (byte) => byte !== 0x0a && byte !== 0x0d,
);
/** Delimiters between tokens (RFC 9110, section 5.6.2), which no token may contain. */
const delimiters = [...'"(),/:;<=>?@[\\]{}'];
const highBytes = [0x80, 0xa0, 0xc3, 0xff];

function answered(what: string, bytes: string): MalformedCase {
  return { what, bytes, verdict: 'answered' };
}

/** A request that only node:http accepts, which continues where the meaning is clear. */
function takenByNode(what: string, bytes: string): MalformedCase {
  return { what, bytes, verdict: { node: 'answered', uws: 'refused' } };
}

/** A request that only uWebSockets.js accepts. */
function takenByUws(what: string, bytes: string): MalformedCase {
  return { what, bytes, verdict: { node: 'refused', uws: 'answered' } };
}

/** The parts between the bars. */
function parts(...lists: readonly string[]): string[] {
  return lists.flatMap((list) => list.split('¦'));
}

function inHead(headers: string): string {
  return `${requestLine}${host}${headers}\r\n{next}`;
}

function messageParsing(): MalformedCase[] {
  const cases: MalformedCase[] = [];
  for (const byte of controls) {
    const character = String.fromCharCode(byte);
    cases.push(
      refused(`${named(byte)} in the method`, `G${character}T {target} HTTP/1.1\r\n${host}\r\n{next}`),
      refused(`${named(byte)} in the target`, `GET {target}${character}x HTTP/1.1\r\n${host}\r\n{next}`),
      refused(`${named(byte)} in the version`, `GET {target} HTTP/1${character}.1\r\n${host}\r\n{next}`),
      refused(`${named(byte)} in a name`, inHead(`X${character}Y: a\r\n`)),
      refused(`${named(byte)} before a name`, inHead(`${character}X: a\r\n`)),
      refused(`${named(byte)} behind a name`, inHead(`X${character}: a\r\n`)),
    );
    const verdict = byte === 0x7f ? takenByUws : refused;
    if (byte !== 0x09) cases.push(verdict(`${named(byte)} in a value`, inHead(`X: a${character}b\r\n`)));
  }
  for (const byte of highBytes) {
    const character = String.fromCharCode(byte);
    cases.push(
      refused(`${named(byte)} in the method`, `G${character}T {target} HTTP/1.1\r\n${host}\r\n{next}`),
      refused(`${named(byte)} in the target`, `GET {target}${character}x HTTP/1.1\r\n${host}\r\n{next}`),
      refused(`${named(byte)} in the path`, `GET /api/query/n${character}ginx HTTP/1.1\r\n${host}\r\n{next}`),
      refused(`${named(byte)} in a name`, inHead(`X${character}Y: a\r\n`)),
    );
  }
  cases.push(
    refused('a bare CR in the request line', `GET {target}\rHTTP/1.1\r\n${host}\r\n{next}`),
    refused('a bare CR behind the version', `GET {target} HTTP/1.1\r${host}\r\n{next}`),
    refused('two CR behind the version', `GET {target} HTTP/1.1\r\r\n${host}\r\n{next}`),
    refused('a bare CR in a name', inHead('X\rY: a\r\n')),
    refused('a bare CR in a value', inHead('X: a\rb\r\n')),
    refused('a bare CR at the end of a value', inHead('X: a\r\r\n')),
    refused('a bare CR that hides a header', inHead('X: a\rContent-Length: 60\r\n')),
    refused('a bare CR before the end', `${requestLine}${host}\r\r\n{next}`),
    refused('a bare CR for the end', `${requestLine}${host}\r{next}`),
    refused('a bare LF behind the request line', `GET {target} HTTP/1.1\n${host}\r\n{next}`),
    refused('a bare LF behind a header', inHead('X: a\nY: b\r\n')),
    refused('a bare LF that hides a header', inHead('X: a\nContent-Length: 60\r\n')),
    refused('a bare LF that hides Transfer-Encoding', inHead('X: a\nTransfer-Encoding: chunked\r\n')),
    refused('a bare LF for the end', `${requestLine}${host}\n{next}`),
    refused('bare LFs alone', 'GET {target} HTTP/1.1\nHost: x\n\n{next}'),
    refused('LF CR', 'GET {target} HTTP/1.1\n\rHost: x\n\r\n\r{next}'),
    refused('a blank before the request line', ` ${requestLine}${host}\r\n{next}`),
    refused('a tab before the request line', `\t${requestLine}${host}\r\n{next}`),
    refused('a blank line that is not empty before it', ` \r\n${requestLine}${host}\r\n{next}`),
    refused('a blank before the first header', `${requestLine} ${host}\r\n{next}`),
    refused('a tab before the first header', `${requestLine}\t${host}\r\n{next}`),
    refused('a NUL alone', '\0'),
    refused('TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'),
    refused('SOCKS', '\x05\x01\x00\x00\x00\x00\x00\x00\x00\x00\r\n\r\n'),
    refused('SSH', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'),
    refused('an answer', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'),
  );
  return cases;
}

function versions(): MalformedCase[] {
  const written = [
    ...parts(
      'http/1.1¦Http/1.1¦HTTP/1¦HTTP/1.¦HTTP/.1¦HTTP/11¦HTTP/1.10¦HTTP/1.01',
      'HTTP/01.1¦HTTP/1.1.1¦HTTP/1,1¦HTTP/1:1¦HTTP/-1.1¦HTTP/+1.1¦HTTP/1.-1',
      'HTTP/1.1x¦HTTP/x.1¦HTTP 1.1¦HTTP/ 1.1¦HTTP /1.1¦HTTP/1 .1¦HTTP/1. 1',
      'HTTP\\1.1¦HTTP//1.1¦HTTP¦1.1¦/1.1¦HTTPS/1.1¦HTP/1.1¦XHTTP/1.1¦ICE/1.0',
      'SIP/2.0¦HTTP/0.9¦HTTP/1.2¦HTTP/1.9¦HTTP/2¦HTTP/2.0¦HTTP/2.1¦HTTP/3',
      'HTTP/3.0¦HTTP/9.9¦HTTP/1.1 ¦HTTP/1.1\t¦HTTP/1.1 x¦HTTP/1.1 HTTP/1.1',
    ),
  ];
  return [
    ...written.map((version) =>
      refused(`the version ${JSON.stringify(version)}`, `GET {target} ${version}\r\n${host}\r\n{next}`),
    ),
    // Node's parser reads this as HTTP/1.0, without a warning.
    takenByNode('the version "RTSP/1.0"', `GET {target} RTSP/1.0\r\n${host}\r\n`),
  ];
}

function requestLines(): MalformedCase[] {
  const lines = [
    ...parts(
      '¦GET¦GET ¦GET {target}¦GET {target} ¦ GET {target} HTTP/1.1',
      'GET\t{target} HTTP/1.1¦GET {target}\tHTTP/1.1¦GET\x0b{target} HTTP/1.1',
      'GET{target} HTTP/1.1¦GET {target}HTTP/1.1¦GET HTTP/1.1¦GET  HTTP/1.1',
      '{target} HTTP/1.1¦HTTP/1.1¦{target}¦GET {target} x HTTP/1.1',
      'GET {target} {target} HTTP/1.1¦GET x {target} HTTP/1.1¦GET\xa0{target} HTTP/1.1',
      'GET\xa0{target}\xa0HTTP/1.1¦GET+{target}+HTTP/1.1¦GET%20{target} HTTP/1.1',
      '"GET" {target} HTTP/1.1¦GET "{target}" HTTP/1.1¦GET <{target}> HTTP/1.1',
    ),
  ];
  return [
    ...lines.map((line) =>
      refused(`the line ${JSON.stringify(line)}`, `${line}\r\n${host}\r\n${line === '' ? '' : '{next}'}`),
    ),
    ...['GET  {target} HTTP/1.1', 'GET {target}  HTTP/1.1'].map((line) =>
      takenByNode(`the line ${JSON.stringify(line)}`, `${line}\r\n${host}\r\n{next}`),
    ),
    takenByNode('an empty line before it', `\r\n${requestLine}${host}\r\n{next}`),
    takenByNode('two empty lines before it', `\r\n\r\n${requestLine}${host}\r\n{next}`),
  ];
}

function methods(): MalformedCase[] {
  const tokens = [
    ...parts(
      'get¦Get¦GETT¦GE¦G¦XGET¦FOO¦POST¦PUT¦DELETE¦PATCH¦TRACE',
      'CONNECT¦OPTIONS¦PRI¦HTTP¦PROPFIND¦QUERY¦GET-¦GET_¦M-SEARCH¦!',
      "GET'¦GET*",
    ),
    'G'.repeat(40_000),
    ...delimiters.map((delimiter) => `G${delimiter}T`),
    ...delimiters.map((delimiter) => `${delimiter}GET`),
  ];
  return tokens.map((token) =>
    refused(`the method ${JSON.stringify(token.slice(0, 20))}`, `${token} {target} HTTP/1.1\r\n${host}\r\n`),
  );
}

function targets(): MalformedCase[] {
  const written = [
    ...parts(
      '*¦¦.¦?¦?limit=1¦api/query/nginx¦x:80¦localhost:80¦127.0.0.1¦//',
      '///¦\\api¦http:¦http:/¦http:/api/query/nginx¦http://¦http:///',
      'http:///api/query/nginx¦http://?x¦http://#¦http://:80/api/query/nginx',
      'http://a b/api/query/nginx¦http://a@x/api/query/nginx¦http://x:b/api/query/nginx',
      'http://x:80:80/api/query/nginx¦http://[::1/api/query/nginx¦http://[]/api/query/nginx',
      'http://x:70000/¦http://evil.example/api/query/nginx¦HTTP://evil.example/api/query/nginx',
      'http://x%zz/api/query/nginx¦ftp://x/api/query/nginx¦file:///api/query/nginx',
      'ws://x/api/query/nginx¦javascript:alert(1)¦data:,x¦/api/query/nginx#x¦{target}#',
      '/api/query/nginx?limit=1#x¦/api/query/%¦/api/query/%2¦/api/query/%zz',
      '/api/query/../query/nginx¦/./api/query/nginx¦/api/query/nginx/..¦/api/query//nginx',
      '//api/query/nginx¦/api/query/nginx%00¦/api/query/%2e%2e/nginx¦/api/query/nginx;x',
      '/api/query/nginx?limit=%zz¦/api/query/nginx?%¦/api/query/nginx?limit',
      '/api/query/nginx?=1¦/api/query/nginx?limit=1&limit=2¦/api/query/nginx?limit=1;after=x',
      '/api/query/nginx?limit=1%26after=x¦/api/query/nginx?limit=%31%0d%0a',
    ),
    `/api/query/nginx?message__like=${'x'.repeat(17_000)}`,
    `/${'x'.repeat(40_000)}`,
    `/api/query/nginx?${'&'.repeat(40_000)}`,
  ];
  return written.map((target) =>
    refused(`the target ${JSON.stringify(target.slice(0, 50))}`, `GET ${target} HTTP/1.1\r\n${host}\r\n`),
  );
}

function hosts(): MalformedCase[] {
  const values = [
    ...parts(
      '¦ ¦\t¦a b¦x y¦x/¦x/y¦a@x¦x?¦x#¦x\\¦<x>¦"x"¦x^¦x|',
      '{x}¦`x`¦x%¦x%2¦x%zz¦x\xe9y¦x\ty¦http://x¦//x¦x:80:80¦x:b¦x:-1',
      'x:+1¦x: 80¦x :80¦x:65536¦x:99999¦x:000080¦:¦:80¦::1¦[::1¦::1]',
      '[::1]x¦[::1]80¦[127.0.0.1]¦[]¦[x]¦[::1%eth0]¦[v1.x]¦[::g]',
      '[1:2:3:4:5:6:7:8:9]¦x, x¦x,y z¦x;y z¦evil.example¦evil.example:80¦y',
      '127.0.0.1.evil.example¦localhost.evil.example¦evil.localhost¦x.¦127.1',
      '0x7f000001¦2130706433',
    ),
    'x'.repeat(300),
  ];
  return [
    refused('no Host', `${requestLine}\r\n{next}`),
    refused('no Host but a Hosts', `${requestLine}Hosts: x\r\n\r\n{next}`),
    refused('two Hosts', `${requestLine}${host}${host}\r\n{next}`),
    refused('two Hosts that differ', `${requestLine}${host}Host: y\r\n\r\n{next}`),
    refused('two Hosts in two cases', `${requestLine}${host}HOST: y\r\n\r\n{next}`),
    refused('two Hosts, the first empty', `${requestLine}Host:\r\n${host}\r\n{next}`),
    refused('a Host that is folded', `${requestLine}Host: x\r\n y\r\n\r\n{next}`),
    refused('a blank behind Host', `${requestLine}Host : x\r\n\r\n{next}`),
    ...values.map((value) =>
      refused(`the Host ${JSON.stringify(value.slice(0, 40))}`, `${requestLine}Host: ${value}\r\n\r\n`),
    ),
  ];
}

function fieldLines(): MalformedCase[] {
  const lines = [
    ...parts(
      'X¦X Y¦ : a¦\t: a¦X : a¦X\t: a¦X  : a¦ X: a¦\tX: a¦=: a¦X\r: a',
      'X: a\r\n b¦X: a\r\n\tb¦X: a\r\n b\r\n c¦X:\r\n a¦X: a\r\n \r\n b¦X\r\n: a',
      'GET {target} HTTP/1.1¦HTTP/1.1 200 OK¦{"a":1}¦<x>¦\x80: a¦X\xa0: a',
    ),
    ...delimiters.filter((delimiter) => delimiter !== ':').map((delimiter) => `X${delimiter}Y: a`),
    ...delimiters.filter((delimiter) => delimiter !== ':').map((delimiter) => `${delimiter}X: a`),
  ];
  return [
    ...lines.map((line) => refused(`the line ${JSON.stringify(line)}`, inHead(`${line}\r\n`))),
    refused('a long name', inHead(`${'x'.repeat(40_000)}: a\r\n`)),
    refused('a long value', inHead(`X: ${'x'.repeat(40_000)}\r\n`)),
    // Node does not count blanks and line ends in the size of a head.
    takenByNode('a long blank', inHead(`X: ${' '.repeat(40_000)}a\r\n`)),
    takenByNode('many lines', inHead('X: a\r\n'.repeat(8_000))),
    takenByNode('many short lines', inHead('a:\r\n'.repeat(10_000))),
    takenByUws('a line without a name', inHead(': a\r\n')),
    takenByUws('a line of a colon', inHead(':\r\n')),
    refused('a line of a colon before Host', `${requestLine}:\r\n${host}\r\n{next}`),
    answered('a name of all characters of names', inHead("!#$%&'*+-.^_`|~09azAZ: a\r\n")),
    answered('values that are empty or blank', inHead('X:\r\nX: \r\nX:\t\r\nX: \t \t\r\n')),
    answered('values in blanks', inHead('X:   a   \r\nX:\ta\t\r\nAccept-Encoding:  identity \r\n')),
    answered('values that are not ASCII', inHead('X: \xe9\xff\x80z\r\n')),
    answered('a name twice', inHead('X: a\r\nX: b\r\nAccept-Encoding: br\r\nAccept-Encoding: x\r\n')),
    answered('a Host in lowercase', `${requestLine}host: x\r\n\r\n{next}`),
    answered('an upgrade', `${requestLine}${host}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`),
    answered('an upgrade to HTTP/2', `${requestLine}${host}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n`),
    answered(
      'the name of a length with another hyphen',
      inHead('Content_Length: 5\r\nTransfer_Encoding: chunked\r\n'),
    ),
    refused('a value without an end', `${requestLine}${host}X: ${'x'.repeat(100_000)}`),
  ];
}

function lengths(): MalformedCase[] {
  const values = [
    ...parts(
      '-1¦-0¦+0¦+1¦0x0¦0x10¦1e1¦1.0¦0.0¦.0¦1 0¦0 0¦0,0¦0, 0',
      '5,5¦5, 5¦5, 6¦0;¦0;x¦"0"¦\'0\'¦0_0¦0a¦a0¦a¦\xb2¦0\x00',
      '\x0b0¦0\x0b¦\f0¦0\f¦1¦5¦05¦010¦99999999999¦9007199254740993',
      '9223372036854775807¦9223372036854775808¦18446744073709551615¦18446744073709551616',
      '18446744073709551617¦99999999999999999999¦9999999999999999999999999999999999999999¦',
      ' ',
    ),
  ];
  return [
    ...values.map((value) =>
      refused(`the length ${JSON.stringify(value)}`, inHead(`Content-Length: ${value}\r\n`)),
    ),
    ...(
      [
        ['0', '0'],
        ['0', '5'],
        ['5', '0'],
        ['5', '5'],
        ['5', '6'],
        ['0', ''],
        ['', '0'],
        ['0', 'a'],
      ] as const
    ).map(([first, second]) =>
      refused(
        `the lengths ${JSON.stringify(first)} and ${JSON.stringify(second)}`,
        inHead(`Content-Length: ${first}\r\nContent-Length: ${second}\r\n`),
      ),
    ),
    answered('the length "0"', inHead('Content-Length: 0\r\n')),
    answered('the length "00"', inHead('Content-Length: 00\r\n')),
    answered('the length "0" in blanks', inHead('Content-Length:   0   \r\n')),
    refused('a length behind a blank', inHead('Content-Length : 5\r\n')),
    refused('a folded length', inHead('Content-Length:\r\n 5\r\n')),
    refused('a length and its body', `${requestLine}${host}Content-Length: 5\r\n\r\nabcde{next}`),
    refused('a length that hides the next request', `${requestLine}${host}Content-Length: 40\r\n\r\n{next}`),
  ];
}

function transferCodings(): MalformedCase[] {
  const values = [
    ...parts(
      'chunked¦Chunked¦CHUNKED¦ chunked¦chunked ¦\tchunked¦chunked\t¦xchunked',
      'chunkedx¦chun ked¦chunked;¦chunked;q=1¦"chunked"¦\'chunked\'¦\x0bchunked',
      'chunked\x0b¦\x00chunked¦chunked\x00¦chunked,¦,chunked¦chunked, chunked',
      'chunked,chunked¦chunked, identity¦identity, chunked¦gzip, chunked¦chunked, gzip',
      'gzip¦identity¦deflate¦x¦¦ ¦,¦chunked\xa0¦\x80chunked¦chunke',
      'hunked¦c¦ch\xfcnked',
    ),
  ];
  const empty = '0\r\n\r\n';
  return [
    ...values.map((value) =>
      refused(
        `the coding ${JSON.stringify(value)}`,
        `${requestLine}${host}Transfer-Encoding: ${value}\r\n\r\n${empty}{next}`,
      ),
    ),
    ...(
      [
        ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'],
        ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'],
        ['Transfer-Encoding: identity', 'Transfer-Encoding: chunked'],
        ['Transfer-Encoding:', 'Transfer-Encoding: chunked'],
        ['Transfer-Encoding: chunked', 'Transfer-encoding: x'],
        ['Content-Length: 5', 'Transfer-Encoding: chunked'],
        ['Transfer-Encoding: chunked', 'Content-Length: 5'],
        ['Content-Length: 0', 'Transfer-Encoding: chunked'],
        ['Transfer-Encoding: chunked', 'Content-Length: 0'],
        ['Content-Length: 5', 'Transfer-Encoding: identity'],
        ['Transfer-Encoding: x', 'Content-Length: 5'],
        ['Content-Length: 5', 'Transfer-Encoding : chunked'],
        ['Content-Length: 5', 'Transfer-Encoding:\r\n chunked'],
        ['Content-Length: 5', 'Transfer-Encoding:\x0bchunked'],
        ['Content-Length: 5', ' Transfer-Encoding: chunked'],
        ['Content-Length: 5', 'X: a\nTransfer-Encoding: chunked'],
        ['Content-Length: 5', 'X: a\rTransfer-Encoding: chunked'],
        ['Content-Length: 5', 'Transfer-Encoding\0: chunked'],
      ] as const
    ).map(([first, second]) =>
      refused(
        `${JSON.stringify(first)} and ${JSON.stringify(second)}`,
        `${requestLine}${host}${first}\r\n${second}\r\n\r\n${empty}{next}`,
      ),
    ),
  ];
}

function chunks(): MalformedCase[] {
  const bodies = [
    ...parts(
      '5\r\nabcde\r\n0\r\n\r\n¦0\r\n\r\n¦Z\r\n¦-1\r\n¦+5\r\nabcde\r\n0\r\n\r\n',
      '0x5\r\nabcde\r\n0\r\n\r\n¦\r\n¦ \r\n¦ 5\r\nabcde\r\n0\r\n\r\n',
      '5 \r\nabcde\r\n0\r\n\r\n¦5;\r\nabcde\r\n0\r\n\r\n¦5;a=b\r\nabcde\r\n0\r\n\r\n',
      '5;a="\r\n"\r\nabcde\r\n¦5\nabcde\n0\n\n¦5\rabcde\r0\r\r¦5\r\nabcde0\r\n\r\n',
      '5\r\nabcdefgh\r\n0\r\n\r\n¦5\r\nabc\r\n0\r\n\r\n¦5\r\nabcde\n0\r\n\r\n',
      'FFFFFFFFFFFFFFFF\r\n¦10000000000000000\r\n¦80000000\r\n',
      '5\r\nabcde\r\n0\r\nX: a\r\n\r\n¦5\r\nabcde\r\n0\r\nX : a\r\n\r\n',
      '0\r\nContent-Length: 5\r\n\r\n¦0\r\n\r\r\n¦0\r\n\n¦00\r\n\r\n¦0;x\r\n\r\n',
      '0\r\nGET {target} HTTP/1.1\r\n\r\n',
    ),
    `${'0'.repeat(40)}5\r\nabcde\r\n0\r\n\r\n`,
    `${'F'.repeat(100)}\r\n`,
    `0;${'x'.repeat(20_000)}\r\n\r\n`,
    '1\r\na\r\n'.repeat(500),
  ];
  return bodies.map((body) =>
    refused(
      `the chunks ${JSON.stringify(body.slice(0, 40))}`,
      `${requestLine}${host}Transfer-Encoding: chunked\r\n\r\n${body}{next}`,
    ),
  );
}

/** By section of RFC 9112. */
export const malformedSections: readonly {
  readonly section: string;
  readonly cases: readonly MalformedCase[];
}[] = [
  { section: '2.2, parsing a message', cases: messageParsing() },
  { section: '2.3, the version', cases: versions() },
  { section: '3, the request line', cases: requestLines() },
  { section: '3.1, the method', cases: methods() },
  { section: '3.2, the target', cases: targets() },
  { section: '3.2, Host', cases: hosts() },
  { section: '5, field lines', cases: fieldLines() },
  { section: '6.1 and 6.3, Transfer-Encoding', cases: transferCodings() },
  { section: '6.2, Content-Length', cases: lengths() },
  { section: '7.1, chunks', cases: chunks() },
];
