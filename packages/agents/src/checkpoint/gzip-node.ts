import type { FileSystem } from './file-system-node.ts'

/** The longest text that engines can hold; a file that unpacks to more is not a checkpoint. */
const MAX_BYTES = 2 ** 29 - 24

export function gzip({ zlib }: FileSystem, text: string): Promise<Uint8Array> {
  return new Promise((resolve, reject) =>
    zlib.gzip(text, (error, bytes) => (error ? reject(error) : resolve(bytes))),
  )
}

export function gunzip({ zlib }: FileSystem, bytes: Uint8Array): Promise<Uint8Array> {
  return new Promise((resolve, reject) =>
    zlib.gunzip(bytes, { maxOutputLength: MAX_BYTES }, (error, unpacked) =>
      error ? reject(error) : resolve(unpacked),
    ),
  )
}

/** By content, because a file may have been renamed. */
export function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b
}
