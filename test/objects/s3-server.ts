import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An object as the server stores it. */
interface StoredObject {
  readonly bytes: Uint8Array;
  readonly etag: string;
  readonly modifiedMs: number;
}

/** A request that was answered. */
export interface SeenRequest {
  readonly method: string;
  /** Key of the object; empty for a listing. */
  readonly key: string;
  /** The requested bytes [from, to); null for none. */
  readonly range: { readonly from: number; readonly to: number } | null;
  readonly ifMatch: string | null;
  readonly status: number;
  readonly bytesSent: number;
}

/** The fault of a request. */
export type Fault =
  | { readonly kind: 'status'; readonly status: number; readonly code: string }
  /** The body ends after this many bytes, and the connection with it. */
  | { readonly kind: 'cut'; readonly after: number }
  /** No bytes are sent, or only this many bytes of the body. */
  | { readonly kind: 'stall'; readonly after: number };

export const accessKey = { id: 'AKIDTEST', secret: 'secret of the test' } as const;

/**
 * The part of S3 that the archive uses: objects of one bucket, listed in pages, read by ranges and versions. Requests must be signed
 * (version 4). The server records the requests, and faults can be set.
 */
export class S3Server {
  readonly bucket = 'logs';
  readonly seen: SeenRequest[] = [];
  /** Chooses the fault of a request; none by default. */
  fault: (request: { readonly method: string; readonly key: string }) => Fault | undefined = () => undefined;
  /** Keys of a page of a listing. */
  pageKeys = 1000;
  /** Whether If-Match is supported, which some services do not. */
  goesByIfMatch = true;
  /** Whether a write can require that the object does not exist. */
  goesByIfNoneMatch = true;
  readonly #objects = new Map<string, StoredObject>();
  /** Parts of objects that are being uploaded, by upload id. */
  readonly uploads = new Map<string, Map<number, Uint8Array>>();
  readonly #stalled = new Set<ServerResponse>();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      // Only the headers of these are sent.
      if (request.method === 'GET' || request.method === 'HEAD') this.#answer(request, response, nothing);
      else void bodyOf(request).then((body) => this.#answer(request, response, body));
    });
  }

  static async start(): Promise<S3Server> {
    const server = new S3Server();
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  pathOf(key: string): string {
    return `s3://${this.bucket}/${key}`;
  }

  put(key: string, bytes: Uint8Array, modifiedMs = 1_700_000_000_000): void {
    const etag = createHash('md5').update(bytes).update(`${modifiedMs}`).digest('hex');
    this.#objects.set(key, { bytes, etag, modifiedMs });
  }

  remove(key: string): void {
    this.#objects.delete(key);
  }

  /** The keys of the objects, and their content. */
  get objects(): ReadonlyMap<string, Uint8Array> {
    return new Map([...this.#objects].map(([key, { bytes }]) => [key, bytes]));
  }

  etagOf(key: string): string {
    return this.#objects.get(key)!.etag;
  }

  /** Puts and removes objects, in one piece or in parts. */
  #write(
    answer: Answer,
    { method, headers }: IncomingMessage,
    query: URLSearchParams,
    key: string,
    body: Uint8Array,
  ): void {
    const upload = query.get('uploadId');
    const parts = this.uploads.get(upload ?? '');
    if (upload !== null && parts === undefined) return answer.error(404, 'NoSuchUpload');
    if (method === 'DELETE') {
      if (upload === null) this.remove(key);
      else this.uploads.delete(upload);
      return answer.done(204);
    }
    if (method === 'POST' && query.has('uploads')) {
      const name = `upload-${this.uploads.size + 1}`;
      this.uploads.set(name, new Map());
      return answer.done(
        200,
        `<InitiateMultipartUploadResult><UploadId>${name}</UploadId></InitiateMultipartUploadResult>`,
      );
    }
    if (method === 'POST') {
      const numbers = [...parts!.keys()].sort((a, b) => a - b);
      this.put(key, Buffer.concat(numbers.map((number) => parts!.get(number)!)));
      this.uploads.delete(upload!);
      return answer.done(
        200,
        `<CompleteMultipartUploadResult><ETag>&quot;${this.etagOf(key)}&quot;</ETag></CompleteMultipartUploadResult>`,
      );
    }
    if (upload !== null) {
      parts!.set(Number(query.get('partNumber')), body);
      return answer.done(200, '', createHash('md5').update(body).digest('hex'));
    }
    if (this.goesByIfNoneMatch && headers['if-none-match'] === '*' && this.#objects.has(key))
      return answer.error(412, 'PreconditionFailed');
    this.put(key, body);
    answer.done(200, '', this.etagOf(key));
  }

  async stop(): Promise<void> {
    for (const response of this.#stalled) response.destroy();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #answer(request: IncomingMessage, response: ServerResponse, body: Uint8Array): void {
    const url = new URL(request.url!, this.endpoint);
    const [, bucket, ...parts] = url.pathname.split('/');
    const key = decodeURIComponent(parts.join('/'));
    const method = request.method!;
    const answer = new Answer(this, request, response, key);
    const fault = this.fault({ method, key });
    if (fault?.kind === 'status') answer.error(fault.status, fault.code);
    else if (!isSigned(request, url)) answer.error(403, 'SignatureDoesNotMatch');
    else if (bucket !== this.bucket) answer.error(404, 'NoSuchBucket');
    else if (key === '') answer.list(url.searchParams, this.#objects);
    else if (method !== 'GET' && method !== 'HEAD') this.#write(answer, request, url.searchParams, key, body);
    else {
      if (fault?.kind === 'stall') this.#stalled.add(response);
      answer.object(this.#objects.get(key), fault);
    }
  }
}

const nothing = new Uint8Array(0);

/** The body of a request; if it was cut off, the part that has arrived. */
async function bodyOf(request: IncomingMessage): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  try {
    for await (const piece of request as AsyncIterable<Uint8Array>) pieces.push(piece);
  } catch {
    // The client has gone.
  }
  return Buffer.concat(pieces);
}

/** The answer to one request. */
class Answer {
  constructor(
    private readonly server: S3Server,
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    private readonly key: string,
  ) {}

  error(status: number, code: string): void {
    this.#send(
      status,
      { 'Content-Type': 'application/xml' },
      Buffer.from(xml(`<Error><Code>${code}</Code><Message>of the test</Message></Error>`)),
    );
  }

  /** The answer to a write. */
  done(status: number, content = '', etag?: string): void {
    const headers = etag === undefined ? {} : { ETag: `"${etag}"` };
    this.#send(
      status,
      { 'Content-Type': 'application/xml', ...headers },
      Buffer.from(content === '' ? '' : xml(content)),
    );
  }

  list(query: URLSearchParams, objects: ReadonlyMap<string, StoredObject>): void {
    const from = Buffer.from(query.get('continuation-token') ?? '', 'base64').toString();
    const keys = [...objects.keys()].filter((key) => key.startsWith(query.get('prefix') ?? '') && key > from);
    keys.sort();
    const page = keys.slice(0, this.server.pageKeys);
    const isTruncated = page.length < keys.length;
    const contents = page.map((key) => {
      const { etag, bytes, modifiedMs } = objects.get(key)!;
      const modified = new Date(modifiedMs).toISOString();
      return `<Contents><Key>${encodeURIComponent(key)}</Key><LastModified>${modified}</LastModified><ETag>&quot;${etag}&quot;</ETag><Size>${bytes.length}</Size></Contents>`;
    });
    const next = isTruncated
      ? `<NextContinuationToken>${Buffer.from(page.at(-1)!).toString('base64')}</NextContinuationToken>`
      : '';
    const head = `<EncodingType>url</EncodingType><IsTruncated>${isTruncated}</IsTruncated>${next}`;
    const body = xml(`<ListBucketResult>${head}${contents.join('')}</ListBucketResult>`);
    this.#send(200, { 'Content-Type': 'application/xml' }, Buffer.from(body));
  }

  object(object: StoredObject | undefined, fault: Fault | undefined): void {
    if (object === undefined) return this.error(404, 'NoSuchKey');
    const ifMatch = this.request.headers['if-match'];
    if (this.server.goesByIfMatch && ifMatch !== undefined && ifMatch !== `"${object.etag}"`)
      return this.error(412, 'PreconditionFailed');
    const range = this.#range(object.bytes.length);
    if (range !== null && range.from >= object.bytes.length) return this.error(416, 'InvalidRange');
    const bytes = range === null ? object.bytes : object.bytes.subarray(range.from, range.to);
    const headers = {
      ETag: `"${object.etag}"`,
      'Last-Modified': new Date(object.modifiedMs).toUTCString(),
      ...(range === null
        ? {}
        : { 'Content-Range': `bytes ${range.from}-${range.to - 1}/${object.bytes.length}` }),
    };
    this.#send(range === null ? 200 : 206, headers, bytes, fault);
  }

  #range(length: number): { from: number; to: number } | null {
    const match = /^bytes=(\d+)-(\d+)$/.exec(this.request.headers.range ?? '');
    return match === null ? null : { from: Number(match[1]), to: Math.min(length, Number(match[2]) + 1) };
  }

  #send(status: number, headers: Record<string, string>, body: Uint8Array, fault?: Fault): void {
    const isHead = this.request.method === 'HEAD';
    const sent = isHead ? 0 : fault === undefined || fault.kind === 'status' ? body.length : fault.after;
    const ifMatch = this.request.headers['if-match'] ?? null;
    const { key, request } = this;
    this.server.seen.push({
      method: request.method!,
      key,
      range: this.#range(Infinity),
      ifMatch: ifMatch?.replaceAll('"', '') ?? null,
      status,
      bytesSent: sent,
    });
    this.response.writeHead(status, { ...headers, 'Content-Length': body.length });
    if (isHead || sent === body.length) {
      this.response.end(isHead ? undefined : body);
      return;
    }
    this.response.flushHeaders();
    this.response.write(body.subarray(0, sent), () => {
      if (fault?.kind === 'cut') this.response.destroy();
    });
  }
}

function xml(content: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?>${content}`;
}

/** Whether a request has the version 4 signature of Amazon for the key of the test. */
function isSigned({ method, headers }: IncomingMessage, url: URL): boolean {
  const pattern =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]+)$/;
  const match = pattern.exec(headers.authorization ?? '');
  if (match === null || match[1] !== accessKey.id) return false;
  const [, , scope, signedHeaders, signature] = match;
  const query = [...url.searchParams]
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .sort()
    .join('&');
  const signed = signedHeaders!.split(';').map((name) => `${name}:${String(headers[name] ?? '').trim()}\n`);
  const content = String(headers['x-amz-content-sha256']);
  const request = [method, url.pathname, query, signed.join(''), signedHeaders, content].join('\n');
  const hash = createHash('sha256').update(request).digest('hex');
  const text = ['AWS4-HMAC-SHA256', String(headers['x-amz-date']), scope, hash].join('\n');
  let key: Buffer | string = `AWS4${accessKey.secret}`;
  for (const part of scope!.split('/')) key = createHmac('sha256', key).update(part).digest();
  return createHmac('sha256', key).update(text).digest('hex') === signature;
}

function encoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
