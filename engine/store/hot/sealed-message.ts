import { assert } from '../../core/errors.js';
import { crc32 } from '../../kernels/crc32.js';

/**
 * The metadata key of the seal of a message. A message of an Arrow IPC stream (`0xffffffff`, length of the metadata, metadata, body) is
 * sealed by the metadata text `logstrata:crc32=<8 hex>;bytes=<12 digits>;offset=<15 digits>`. The checksum covers the whole message, with
 * its own 8 digits as zeros. Length and offset are included so that a message is known to be whole before any of it is decoded, and so that
 * a copy of a message inside a record is never taken for a message.
 */
export const sealKey = 'logstrata:seal';

const checksumMark = Buffer.from('logstrata:crc32=');
const checksumZeros = Buffer.from('00000000');
const sealPattern = /^logstrata:crc32=([0-9a-f]{8});bytes=(\d{12});offset=(\d{15})$/;
/** Distance from the checksum's digits to those of the length. */
const bytesAfterChecksum = '00000000;bytes='.length;
const sealBytes = 'logstrata:crc32=00000000;bytes=000000000000;offset=000000000000000'.length;

/** Length of the prefix: the continuation mark and the length of the metadata. */
export const messagePrefixBytes = 8;
const continuation = 0xff;

/** The metadata value to store under `sealKey` before the message is laid out. `sealMessage` fills in the checksum and the length. */
export function unfinishedSeal(offset: number): string {
  return `logstrata:crc32=00000000;bytes=${pad(0, 12)};offset=${pad(offset, 15)}`;
}

function pad(value: number, digits: number): string {
  return String(value).padStart(digits, '0');
}

/** Writes the length and the checksum into the seal of a complete message. */
export function sealMessage(message: Uint8Array): void {
  const buffer = asBuffer(message);
  const at = checksumAt(buffer);
  assert(at > 0, 'a message was laid out without its seal');
  buffer.write(pad(message.length, 12), at + bytesAfterChecksum, 'latin1');
  buffer.write(checksum(buffer, at), at, 'latin1');
}

/** Length of the whole, undamaged message that begins at index `start` and was written for offset `offset` of its file; 0 if there is none. */
export function sealedMessageBytes(bytes: Uint8Array, start: number, offset: number): number {
  const metadataBytes = metadataBytesAt(bytes, start);
  if (metadataBytes === 0) return 0;
  const head = asBuffer(bytes.subarray(start, start + messagePrefixBytes + metadataBytes));
  const at = checksumAt(head);
  if (at < 0) return 0;
  const seal = sealPattern.exec(
    head.toString('latin1', at - checksumMark.length, at - checksumMark.length + sealBytes),
  );
  if (seal === null || Number(seal[3]) !== offset) return 0;
  const messageBytes = Number(seal[2]);
  if (messageBytes < head.length || start + messageBytes > bytes.length || messageBytes % 8 !== 0) return 0;
  const message = asBuffer(bytes.subarray(start, start + messageBytes));
  return checksum(message, at) === seal[1] ? messageBytes : 0;
}

/**
 * Index of the next whole message at or after `start`, or -1. Messages are aligned to 8 bytes, and so must `start` be. `base` is the offset
 * in the file of the first of `bytes`.
 */
export function findSealedMessage(bytes: Uint8Array, start: number, base: number): number {
  for (let at = start; at + messagePrefixBytes <= bytes.length; at += 8) {
    if (bytes[at] !== continuation || bytes[at + 3] !== continuation) continue;
    if (sealedMessageBytes(bytes, at, base + at) > 0) return at;
  }
  return -1;
}

/** Length of the metadata of a message that may begin at `start`; 0 if none can. */
export function metadataBytesAt(bytes: Uint8Array, start: number): number {
  if (start + messagePrefixBytes > bytes.length) return 0;
  const view = new DataView(bytes.buffer, bytes.byteOffset + start, messagePrefixBytes);
  if (view.getInt32(0, true) !== -1) return 0;
  const metadataBytes = view.getInt32(4, true);
  if (metadataBytes <= 0 || metadataBytes % 8 !== 0) return 0;
  return start + messagePrefixBytes + metadataBytes <= bytes.length ? metadataBytes : 0;
}

/** Index of the 8 digits of the checksum, or -1. The seal is the first text of the metadata, so the first match is the seal. */
function checksumAt(head: Buffer): number {
  const mark = head.indexOf(checksumMark, messagePrefixBytes);
  return mark < 0 || mark + sealBytes > head.length ? -1 : mark + checksumMark.length;
}

function checksum(message: Buffer, at: number): string {
  const before = crc32(message.subarray(0, at));
  const over = crc32(checksumZeros, before);
  return crc32(message.subarray(at + checksumZeros.length), over)
    .toString(16)
    .padStart(8, '0');
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
