import { LogstrataError } from '../../terms/errors.js';

/**
 * A message between two processes. Its bytes are the length of the JSON and the length of the payload (u32 each, little-endian), the JSON
 * (an object), and the payload.
 */
export interface Frame {
  readonly json: Readonly<Record<string, unknown>>;
  readonly payload: Uint8Array;
}

/** Limits on the lengths of a frame's parts. */
export interface FrameBounds {
  readonly jsonBytesMax: number;
  readonly payloadBytesMax: number;
}

const headerBytes = 8;

/** Encodes the header and JSON of a frame, to be followed by the payload. Throws `limit` if the frame exceeds `bounds`. */
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
    `a message has ${jsonBytes} + ${payloadBytes} bytes, more than the maximum of ${bounds.jsonBytesMax} + ${bounds.payloadBytesMax}`,
  );
}

/** Assembles frames that arrive in pieces. Holds at most one frame and one piece. */
export class FrameReader {
  bounds: FrameBounds;
  #pieces: Buffer[] = [];
  #length = 0;
  #wanted = headerBytes;

  constructor(bounds: FrameBounds) {
    this.bounds = bounds;
  }

  /** Adds a piece, and yields the frames that are complete with it. Throws `limit` or `invalid` for anything that is not a frame. */
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
      // Copied, because a view would keep the whole received piece in memory, and because batches need alignment.
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
    throw new LogstrataError('invalid', 'a message is not JSON', { cause: error });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new LogstrataError('invalid', 'a message is not a JSON object');
  }
  return value as Readonly<Record<string, unknown>>;
}
