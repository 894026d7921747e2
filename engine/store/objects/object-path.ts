/** An object of an object storage. */
export interface ObjectPlace {
  readonly bucket: string;
  readonly key: string;
}

const scheme = 's3://';

/** Whether a path, or a pattern of paths, is of objects: `s3://bucket/key`. */
export function isObjectPath(path: string): boolean {
  return path.startsWith(scheme);
}

/** The path of an object. */
export function objectPath({ bucket, key }: ObjectPlace): string {
  return `${scheme}${bucket}/${key}`;
}

/** Bucket and key of a path; the key is empty where there is none. */
export function objectPlace(path: string): ObjectPlace {
  const [bucket = '', ...parts] = path.slice(scheme.length).split('/');
  return { bucket, key: parts.join('/') };
}
