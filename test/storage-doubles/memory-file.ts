/** Bytes that a disk writes as a whole; a crash keeps or loses an unsynced write in units of these. */
const sectorBytes = 512;

/** How much non-durable data a crash keeps: nothing, everything, or what a seed decides. */
export type CrashMode = 'lost' | 'kept' | { readonly seed: number };

/** Bytes that grow at the end; holes read as zeros. */
class GrowingBytes {
  #bytes = new Uint8Array(0);
  length = 0;

  view(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }

  write(position: number, bytes: Uint8Array): void {
    this.#reserve(position + bytes.length);
    this.#bytes.set(bytes, position);
    this.length = Math.max(this.length, position + bytes.length);
  }

  truncate(length: number): void {
    this.#reserve(length);
    if (length < this.length) this.#bytes.fill(0, length, this.length);
    this.length = length;
  }

  clone(): GrowingBytes {
    const copy = new GrowingBytes();
    copy.write(0, this.view());
    return copy;
  }

  #reserve(length: number): void {
    if (length <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(length, 2 * this.#bytes.length, 256));
    larger.set(this.view());
    this.#bytes = larger;
  }
}

type PendingChange =
  | { readonly kind: 'write'; readonly position: number; readonly bytes: Uint8Array }
  | { readonly kind: 'truncate'; readonly length: number };

/** The content of one file: what readers see, and what would survive a crash. */
export class MemoryFile {
  #seen = new GrowingBytes();
  #durable = new GrowingBytes();
  #pending: PendingChange[] = [];

  get length(): number {
    return this.#seen.length;
  }

  read(position: number, length: number): Uint8Array {
    return this.#seen.view().slice(position, position + length);
  }

  write(position: number, bytes: Uint8Array): void {
    const copy = bytes.slice();
    this.#seen.write(position, copy);
    this.#pending.push({ kind: 'write', position, bytes: copy });
  }

  truncate(length: number): void {
    this.#seen.truncate(length);
    this.#pending.push({ kind: 'truncate', length });
  }

  sync(): void {
    for (const change of this.#pending) applyChange(this.#durable, change);
    this.#pending = [];
  }

  /** The effect of a failed fsync: the unsynced content is lost, and the next sync does not report that. */
  loseUnsynced(): void {
    this.#seen = this.#durable.clone();
    this.#pending = [];
  }

  /**
   * The effect of a failed fsync on Linux while the content stays in memory: it is read as before, and no later sync writes it unless it
   * is written again.
   */
  forgetUnsynced(): void {
    this.#pending = [];
  }

  /** The file as it is found after a crash. Unsynced changes may survive in part, and in any order. */
  afterCrash(mode: CrashMode, random: () => number): MemoryFile {
    const bytes = this.#durable.clone();
    if (mode !== 'lost') {
      for (const change of this.#pending) {
        if (mode === 'kept') applyChange(bytes, change);
        else keepAtRandom(bytes, change, random);
      }
    }
    const file = new MemoryFile();
    file.#seen = bytes;
    file.#durable = bytes.clone();
    return file;
  }
}

function applyChange(target: GrowingBytes, change: PendingChange): void {
  if (change.kind === 'write') target.write(change.position, change.bytes);
  else target.truncate(change.length);
}

/** Keeps a change, loses it, keeps its beginning, or keeps some of its sectors. */
function keepAtRandom(target: GrowingBytes, change: PendingChange, random: () => number): void {
  const choice = Math.floor(random() * 4);
  if (choice === 0) return;
  if (choice === 1 || change.kind === 'truncate') {
    applyChange(target, change);
    return;
  }
  if (choice === 2) {
    const keptBytes = Math.floor(random() * (change.bytes.length + 1));
    target.write(change.position, change.bytes.subarray(0, keptBytes));
    return;
  }
  for (let start = 0; start < change.bytes.length; start += sectorBytes) {
    if (random() < 0.5) continue;
    target.write(change.position + start, change.bytes.subarray(start, start + sectorBytes));
  }
}
