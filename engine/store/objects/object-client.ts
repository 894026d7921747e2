import type { ObjectPlace } from './object-path.js';

/** What tells whether an object is still the same. */
export interface ObjectStamp {
  readonly bytes: number;
  /** When it was written, in whole seconds as milliseconds: headers say no more. */
  readonly mtimeMs: number;
  /** What the storage calls this version, without quotes. */
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
  /** What the next page is asked by; undefined behind the last. */
  readonly next: string | undefined;
}

/** Why a request has failed. */
export class ObjectFailure extends Error {
  constructor(
    message: string,
    /** Of the answer; undefined where there was none. */
    readonly status: number | undefined,
    /** Whether the same request may succeed next time. */
    readonly isPassing: boolean,
    options: ErrorOptions = {},
  ) {
    super(message, options);
    this.name = 'ObjectFailure';
  }
}

/** Requests to an object storage, one by one: nothing is tried again here. They throw `ObjectFailure`, or the signal's reason. */
export interface ObjectClient {
  /** A page of the objects of a bucket whose keys begin with `prefix`, in the order of the keys. */
  list(bucket: string, prefix: string, from: string | undefined, signal: AbortSignal): Promise<ObjectPage>;
  stamp(place: ObjectPlace, signal: AbortSignal): Promise<ObjectStamp>;
  /** The bytes [from, to) of the version that `etag` names, all of them. */
  read(place: ObjectPlace, etag: string, from: number, to: number, signal: AbortSignal): Promise<Uint8Array>;
  /** Puts an object in its place in one step. With `onlyNew` it fails with 412 where there is one. Gives what the storage calls it. */
  put(place: ObjectPlace, bytes: Uint8Array, onlyNew: boolean, signal: AbortSignal): Promise<string>;
  /** Begins an object that comes in parts; gives the name of the upload. */
  beginParts(place: ObjectPlace, signal: AbortSignal): Promise<string>;
  /** Puts a part, which are counted from 1; gives what the storage calls it. */
  putPart(place: ObjectPlace, part: PartOf, bytes: Uint8Array, signal: AbortSignal): Promise<string>;
  /** Makes an object of its parts, in one step. Gives what the storage calls it. */
  endParts(
    place: ObjectPlace,
    upload: string,
    parts: readonly string[],
    signal: AbortSignal,
  ): Promise<string>;
  dropParts(place: ObjectPlace, upload: string, signal: AbortSignal): Promise<void>;
  /** Removes an object. No error where there is none. */
  remove(place: ObjectPlace, signal: AbortSignal): Promise<void>;
  close(): void;
}

/** A part of an object that is uploaded. */
export interface PartOf {
  readonly upload: string;
  readonly number: number;
}
