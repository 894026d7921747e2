/** Bucket and key of an object. */
export interface ObjectPlace {
  readonly bucket: string;
  readonly key: string;
}

const scheme = 's3://';

/** Whether a path, or a path pattern, names objects: `s3://bucket/key`. */
export function isObjectPath(path: string): boolean {
  return path.startsWith(scheme);
}

/** The `s3://` path of an object. */
export function objectPath({ bucket, key }: ObjectPlace): string {
  return `${scheme}${bucket}/${key}`;
}

/** Bucket and key of an `s3://` path. The key is empty if the path has none. */
export function objectPlace(path: string): ObjectPlace {
  const [bucket = '', ...parts] = path.slice(scheme.length).split('/');
  return { bucket, key: parts.join('/') };
}
