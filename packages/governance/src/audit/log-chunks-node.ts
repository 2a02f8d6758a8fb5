import { open } from 'node:fs/promises'

/** Names of the files in a log's folder. */
export const ENTRIES_FILE = 'entries.ndjson'
export const CHECKPOINTS_FILE = 'checkpoints.ndjson'

/** A file's bytes from `start`, in pieces; nothing for a file that is not there. Each piece is valid until the next. */
export async function* readChunks(path: string, start = 0): AsyncGenerator<Uint8Array, void> {
  const file = await openToRead(path)
  if (file === undefined) return
  try {
    const buffer = new Uint8Array(1 << 18)
    for (let at = start; ;) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, at)
      if (bytesRead === 0) return
      at += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
  } finally {
    await file.close()
  }
}

async function openToRead(path: string): Promise<Awaited<ReturnType<typeof open>> | undefined> {
  try {
    return await open(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
