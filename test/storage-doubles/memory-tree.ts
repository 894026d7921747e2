import { LogstrataError } from '../../engine/core/errors.js';
import { MemoryFile, type CrashMode } from './memory-file.js';
import { pathParts } from '../../engine/store/disk/directory.js';

export type MemoryNode = MemoryFolder | MemoryFile;

/** A folder: the visible names, and those that would survive a crash. */
export class MemoryFolder {
  readonly seen = new Map<string, MemoryNode>();
  readonly durable = new Map<string, MemoryNode>();
}

interface NameChange {
  readonly folder: MemoryFolder;
  readonly name: string;
  /** The node of the name from now on; null for none. */
  readonly node: MemoryNode | null;
}

/** Names and folders, with the changes to them that no folder sync has made durable yet. */
export class MemoryTree {
  readonly root: MemoryFolder;
  readonly location: string;
  /** A rename is one entry with two changes: a journal keeps or loses it as a whole. */
  #pending: (readonly NameChange[])[] = [];

  constructor(location: string, root = new MemoryFolder()) {
    this.location = location;
    this.root = root;
  }

  find(path: string): MemoryNode | undefined {
    let node: MemoryNode | undefined = this.root;
    for (const part of pathParts(path)) {
      if (!(node instanceof MemoryFolder)) return undefined;
      node = node.seen.get(part);
    }
    return node;
  }

  file(path: string, action: string): MemoryFile {
    const node = this.find(path);
    if (node instanceof MemoryFile) return node;
    if (node === undefined)
      throw this.#error('not_found', `cannot ${action}`, path, 'no such file or folder');
    throw this.#error('io', `cannot ${action}`, path, 'it is a folder, a file was expected');
  }

  folder(path: string, action: string): MemoryFolder {
    const node = this.find(path);
    if (node instanceof MemoryFolder) return node;
    if (node === undefined)
      throw this.#error('not_found', `cannot ${action}`, path, 'no such file or folder');
    throw this.#error('io', `cannot ${action}`, path, 'it is a file, a folder was expected');
  }

  /** The folder and the name in it that `path` refers to. The folder must exist; the name need not. */
  place(path: string, action: string): { folder: MemoryFolder; name: string } {
    const parts = pathParts(path);
    const name = parts.pop();
    if (name === undefined) throw this.#error('io', `cannot ${action}`, path, 'it is the archive itself');
    return { folder: this.folder(parts.join('/'), action), name };
  }

  /** Changes names at once for readers, and durably only when one of the folders is synced. */
  change(changes: readonly NameChange[]): void {
    for (const { folder, name, node } of changes) setName(folder.seen, name, node);
    this.#pending.push(changes);
  }

  syncFolder(folder: MemoryFolder): void {
    const left: (readonly NameChange[])[] = [];
    for (const changes of this.#pending) {
      if (changes.some((change) => change.folder === folder)) applyDurably(changes);
      else left.push(changes);
    }
    this.#pending = left;
  }

  exists(path: string, action: string): LogstrataError {
    return this.#error('exists', `cannot ${action}`, path, 'it already exists');
  }

  /** The tree as it is found after a crash. This one must not be used any more. */
  afterCrash(mode: CrashMode, random: () => number): MemoryTree {
    for (const changes of this.#pending) {
      if (mode === 'kept' || (mode !== 'lost' && random() < 0.5)) applyDurably(changes);
    }
    const survivors = new Map<MemoryNode, MemoryNode>();
    const root = this.#survivor(this.root, mode, random, survivors);
    return new MemoryTree(this.location, root instanceof MemoryFolder ? root : undefined);
  }

  #survivor(
    node: MemoryNode,
    mode: CrashMode,
    random: () => number,
    survivors: Map<MemoryNode, MemoryNode>,
  ): MemoryNode {
    const known = survivors.get(node);
    if (known !== undefined) return known;
    if (node instanceof MemoryFile) {
      const file = node.afterCrash(mode, random);
      survivors.set(node, file);
      return file;
    }
    const folder = new MemoryFolder();
    survivors.set(node, folder);
    for (const [name, child] of node.durable) {
      const survivor = this.#survivor(child, mode, random, survivors);
      folder.seen.set(name, survivor);
      folder.durable.set(name, survivor);
    }
    return folder;
  }

  #error(code: 'not_found' | 'exists' | 'io', action: string, path: string, reason: string): LogstrataError {
    const where = `${this.location}/${path}`;
    return new LogstrataError(code, `${action} ${where}: ${reason}`, { path: where });
  }
}

function setName(names: Map<string, MemoryNode>, name: string, node: MemoryNode | null): void {
  if (node === null) names.delete(name);
  else names.set(name, node);
}

function applyDurably(changes: readonly NameChange[]): void {
  for (const { folder, name, node } of changes) setName(folder.durable, name, node);
}
