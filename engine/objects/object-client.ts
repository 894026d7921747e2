import { setTimeout as delay } from 'node:timers/promises';
import { LogstrataError, type ErrorCode } from '../core/errors.js';
import { attemptsMax, objectRequestMsMax, retryMs } from '../core/limits.js';

/** Bucket and key of an object. */
export interface ObjectPlace {
  readonly bucket: string;
  readonly key: string;
}

const scheme = 's3://';

/** Whether a path, or a path pattern, names objects: `s3://bucket/key`. */
export function isObjectPath(path: string): boolean {
  return path.startsWith(scheme);
}

/** The `s3://` path of an object. */
export function objectPath({ bucket, key }: ObjectPlace): string {
  return `${scheme}${bucket}/${key}`;
}

/** Bucket and key of an `s3://` path. The key is empty if the path has none. */
export function objectPlace(path: string): ObjectPlace {
  const [bucket = '', ...parts] = path.slice(scheme.length).split('/');
  return { bucket, key: parts.join('/') };
}

/** The attributes by which a change of an object is detected. */
export interface ObjectStamp {
  readonly bytes: number;
  /** Modification time in milliseconds, truncated to seconds, because HTTP headers have no finer resolution. */
  readonly mtimeMs: number;
  /** The storage's ETag of this version, without quotes. */
  readonly etag: string;
}

/** A version of an object. */
export interface ObjectVersion extends Pick<ObjectStamp, 'bytes' | 'etag'> {
  readonly path: string;
}

export interface ListedObject extends ObjectStamp {
  readonly key: string;
}

export interface ObjectPage {
  readonly objects: readonly ListedObject[];
  /** Token to request the next page with; undefined for the last page. */
  readonly next: string | undefined;
}

/** A failed request. */
export class ObjectFailure extends Error {
  constructor(
    message: string,
    /** HTTP status of the response; undefined if there was none. */
    readonly status: number | undefined,
    /** Whether the failure is temporary, so that the same request may succeed later. */
    readonly isPassing: boolean,
    options: ErrorOptions = {},
  ) {
    super(message, options);
    this.name = 'ObjectFailure';
  }
}

/** Single requests to an object storage, without retries. They throw `ObjectFailure`, or the signal's reason. */
export interface ObjectClient {
  /** A page of the objects of a bucket whose keys begin with `prefix`, in the order of keys. */
  list(bucket: string, prefix: string, from: string | undefined, signal: AbortSignal): Promise<ObjectPage>;
  /** Size, time and ETag of an object. */
  stamp(place: ObjectPlace, signal: AbortSignal): Promise<ObjectStamp>;
  /** Reads the bytes [from, to) of the version with ETag `etag`. Fails if the response is shorter. */
  read(place: ObjectPlace, etag: string, from: number, to: number, signal: AbortSignal): Promise<Uint8Array>;
  /** Writes an object atomically. With `onlyNew` it fails with status 412 if the object exists. Returns the new ETag. */
  put(place: ObjectPlace, bytes: Uint8Array, onlyNew: boolean, signal: AbortSignal): Promise<string>;
  /** Begins a multipart upload; returns its id. */
  beginParts(place: ObjectPlace, signal: AbortSignal): Promise<string>;
  /** Uploads a part; returns its ETag. Parts are numbered from 1. */
  putPart(place: ObjectPlace, part: PartOf, bytes: Uint8Array, signal: AbortSignal): Promise<string>;
  /** Completes a multipart upload atomically, given the ETags of its parts. Returns the object's ETag. */
  endParts(
    place: ObjectPlace,
    upload: string,
    parts: readonly string[],
    signal: AbortSignal,
  ): Promise<string>;
  /** Aborts a multipart upload. */
  dropParts(place: ObjectPlace, upload: string, signal: AbortSignal): Promise<void>;
  /** Removes an object. No error if it does not exist. */
  remove(place: ObjectPlace, signal: AbortSignal): Promise<void>;
  close(): void;
}

/** A part of a multipart upload. */
export interface PartOf {
  readonly upload: string;
  readonly number: number;
}

/** Limits of a request and its retries. */
export interface RequestLimits {
  /** Timeout of one attempt (ms), including its response. */
  readonly msMax: number;
  readonly attemptsMax: number;
  /** Delay before the second attempt (ms). It doubles with each further attempt. */
  readonly retryMs: number;
}

export const requestLimitsDefault: RequestLimits = {
  msMax: objectRequestMsMax,
  attemptsMax,
  retryMs,
};

/**
 * Makes a request, and retries it after temporary failures a limited number of times.
 *
 * @param doing the action for the error message, as in "cannot read s3://bucket/key"
 * @param path path of the object, or prefix of keys
 * @throws LogstrataError with the path: `conflict` if the object was replaced (status 412), `not_found` and `io`
 */
export async function request<T>(
  doing: string,
  path: string,
  { msMax, attemptsMax, retryMs }: RequestLimits,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await within(msMax, ask);
    } catch (error) {
      if (!(error instanceof ObjectFailure)) throw error;
      if (!error.isPassing || attempt >= attemptsMax) throw failed(doing, path, error, attempt);
    }
    // Random jitter, so that requests that failed together are not retried together.
    await delay(retryMs * 2 ** (attempt - 1) * (0.5 + Math.random()));
  }
}

async function within<T>(msMax: number, ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stopping = new AbortController();
  const late = new ObjectFailure(`no complete answer within ${msMax / 1000} s`, undefined, true);
  const timer = setTimeout(() => stopping.abort(late), msMax);
  try {
    return await ask(stopping.signal);
  } catch (error) {
    throw stopping.signal.aborted ? late : error;
  } finally {
    clearTimeout(timer);
  }
}

function failed(doing: string, path: string, failure: ObjectFailure, attempts: number): LogstrataError {
  const often = attempts === 1 ? '' : `, ${attempts} times`;
  const message = `cannot ${doing} ${path}: ${failure.message}${often}`;
  return new LogstrataError(codeOf(failure), message, { path, cause: failure });
}

function codeOf({ status }: ObjectFailure): ErrorCode {
  if (status === 404) return 'not_found';
  return status === 412 ? 'conflict' : 'io';
}

/** A multipart upload. The object exists once `end` has returned, and not at all before. */
export class ObjectParts {
  readonly #parts: string[] = [];

  private constructor(
    private readonly client: ObjectClient,
    private readonly path: string,
    private readonly limits: RequestLimits,
    private readonly upload: string,
  ) {}

  /** Begins an upload. Throws `io`. */
  static async begin(client: ObjectClient, path: string, limits: RequestLimits): Promise<ObjectParts> {
    const upload = await request('write', path, limits, (signal) =>
      client.beginParts(objectPlace(path), signal),
    );
    return new ObjectParts(client, path, limits, upload);
  }

  /** Uploads the next part. */
  async put(bytes: Uint8Array): Promise<void> {
    const part = { upload: this.upload, number: this.#parts.length + 1 };
    this.#parts.push(
      await request('write', this.path, this.limits, (signal) =>
        this.client.putPart(objectPlace(this.path), part, bytes, signal),
      ),
    );
  }

  /** Completes the upload. Throws `io`. */
  async end(): Promise<void> {
    await request('write', this.path, this.limits, (signal) =>
      this.client.endParts(objectPlace(this.path), this.upload, this.#parts, signal),
    );
  }

  /** Aborts the upload, because the storage would charge for its parts. */
  async drop(): Promise<void> {
    await request('give up', this.path, this.limits, (signal) =>
      this.client.dropParts(objectPlace(this.path), this.upload, signal),
    );
  }
}
