import { LogstrataError } from '../../terms/errors.js';

/**
 * What two processes say to each other: length of the JSON and length of the payload (32 bits each, little-endian), the
 * JSON (an object), the payload.
 */
export interface Frame {
  readonly json: Readonly<Record<string, unknown>>;
  readonly payload: Uint8Array;
}

export interface FrameBounds {
  readonly jsonBytesMax: number;
  readonly payloadBytesMax: number;
}

const headerBytes = 8;

/** The header and JSON of a frame; the payload follows it. Throws `limit` when it exceeds `bounds`. */
export function encodeFrame(json: object, payload: Uint8Array, bounds: FrameBounds): Buffer {
  const text = Buffer.from(JSON.stringify(json));
  checkLengths(text.length, payload.length, bounds);
  const head = Buffer.allocUnsafe(headerBytes + text.length);
  head.writeUInt32LE(text.length, 0);
  head.writeUInt32LE(payload.length, 4);
  text.copy(head, headerBytes);
  return head;
}

function checkLengths(jsonBytes: number, payloadBytes: number, bounds: FrameBounds): void {
  if (jsonBytes <= bounds.jsonBytesMax && payloadBytes <= bounds.payloadBytesMax) return;
  throw new LogstrataError(
    'limit',
    `a message of ${jsonBytes} + ${payloadBytes} bytes, but at most ${bounds.jsonBytesMax} + ${bounds.payloadBytesMax} are possible`,
  );
}

/** Puts the frames together that arrive in pieces. Holds no more than one frame and one piece. */
export class FrameReader {
  bounds: FrameBounds;
  #pieces: Buffer[] = [];
  #length = 0;
  #wanted = headerBytes;

  constructor(bounds: FrameBounds) {
    this.bounds = bounds;
  }

  /** Takes a piece and gives the frames that are whole with it. Throws `limit` or `invalid` for what is no frame. */
  *push(piece: Buffer): Generator<Frame> {
    this.#pieces.push(piece);
    this.#length += piece.length;
    while (this.#length >= this.#wanted) {
      const bytes = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
      this.#pieces = [bytes];
      const jsonBytes = bytes.readUInt32LE(0);
      const payloadBytes = bytes.readUInt32LE(4);
      checkLengths(jsonBytes, payloadBytes, this.bounds);
      const frameBytes = headerBytes + jsonBytes + payloadBytes;
      if (bytes.length < frameBytes) {
        this.#wanted = frameBytes;
        return;
      }
      const rest = bytes.subarray(frameBytes);
      this.#pieces = rest.length === 0 ? [] : [rest];
      this.#length = rest.length;
      this.#wanted = headerBytes;
      const payloadStart = headerBytes + jsonBytes;
      // A copy: a view would keep all of the received piece in memory, and batches need alignment.
      const payload = new Uint8Array(bytes.subarray(payloadStart, frameBytes));
      yield { json: parseObject(bytes.toString('utf8', headerBytes, payloadStart)), payload };
    }
  }
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new LogstrataError('invalid', 'a message that is no JSON', { cause: error });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new LogstrataError('invalid', 'a message that is no JSON object');
  }
  return value as Readonly<Record<string, unknown>>;
}
