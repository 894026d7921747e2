import type { ObjectPlace } from './object-path.js';

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
