/** Gives memory of a size in bytes: of any content, and at a multiple of 8 bytes in its buffer. */
export type Room = (sizeBytes: number) => Uint8Array;

/** Memory of the heap. */
export const heapRoom: Room = (sizeBytes) => new Uint8Array(sizeBytes);
