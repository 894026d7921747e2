import type { ObjectClient } from './object-client.js';
import { objectPlace } from './object-path.js';
import { request, type RequestLimits } from './requests.js';

/** A multipart upload. The object exists once `end` has returned, and not at all before. */
export class ObjectParts {
  readonly #client: ObjectClient;
  readonly #path: string;
  readonly #limits: RequestLimits;
  readonly #upload: string;
  readonly #parts: string[] = [];

  private constructor(client: ObjectClient, path: string, limits: RequestLimits, upload: string) {
    this.#client = client;
    this.#path = path;
    this.#limits = limits;
    this.#upload = upload;
  }

  /** Begins an upload. Throws `io`. */
  static async begin(client: ObjectClient, path: string, limits: RequestLimits): Promise<ObjectParts> {
    const upload = await request('write', path, limits, (signal) =>
      client.beginParts(objectPlace(path), signal),
    );
    return new ObjectParts(client, path, limits, upload);
  }

  /** Uploads the next part. */
  async put(bytes: Uint8Array): Promise<void> {
    const part = { upload: this.#upload, number: this.#parts.length + 1 };
    this.#parts.push(
      await request('write', this.#path, this.#limits, (signal) =>
        this.#client.putPart(objectPlace(this.#path), part, bytes, signal),
      ),
    );
  }

  /** Completes the upload. Throws `io`. */
  async end(): Promise<void> {
    await request('write', this.#path, this.#limits, (signal) =>
      this.#client.endParts(objectPlace(this.#path), this.#upload, this.#parts, signal),
    );
  }

  /** Aborts the upload, because the storage would charge for its parts. */
  async drop(): Promise<void> {
    await request('give up', this.#path, this.#limits, (signal) =>
      this.#client.dropParts(objectPlace(this.#path), this.#upload, signal),
    );
  }
}
