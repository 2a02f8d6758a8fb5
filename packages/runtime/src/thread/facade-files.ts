import { sha256Hex } from '@skein/base'
import { RuntimeError } from '../contract/error.ts'
import type { FileStat, ThreadState } from '../contract/thread-state.ts'
import { normalisePath } from './paths.ts'
import { fileMediaType, isTextFile } from './media-type.ts'
import { createGlob } from './glob.ts'
import { type FacadeBuffer, overlaid, allOverlaid } from './facade-buffer.ts'

/** The part of a thread's state that concerns files. */
type FileMembers = Pick<
  ThreadState,
  | 'writeFile'
  | 'readFile'
  | 'readTextFile'
  | 'statFile'
  | 'listFiles'
  | 'removeFile'
  | 'moveFile'
  | 'findFiles'
  | 'grepFiles'
>

/** The file methods of a thread's state, and two methods that are internal. */
export interface FacadeFiles extends FileMembers {
  /** Returns the normalised paths; throws `FILE_NOT_FOUND` for a path without a file. */
  existing(paths: readonly string[] | undefined): readonly string[]
  clear(): void
}

/**
 * Creates the methods of a thread's state for files (`writeFile`, `readFile` …). Reads include changes
 * that are not committed yet.
 */
export function facadeFiles(buffer: FacadeBuffer): FacadeFiles {
  const { kernel, environment, events, blobs } = buffer
  const pending = new Map<string, FileStat | null>()

  function find(path: string): FileStat {
    const normal = normalisePath(path)
    const stat = overlaid(pending, kernel.files, normal)
    if (stat) return stat
    throw new RuntimeError(`There is no file ${normal} in thread ${kernel.threadId}.`, {
      code: 'FILE_NOT_FOUND',
      hint: 'listFiles() names the files there are.',
    })
  }

  function put(file: Omit<FileStat, 'writtenAt'>): FileStat {
    const at = buffer.at()
    const { turnId, toolCallId } = buffer
    events.push({ type: 'file_written', at, ...file, turnId, toolCallId })
    const stat = { ...file, writtenAt: at }
    pending.set(file.path, stat)
    return stat
  }

  function drop(path: string): void {
    events.push({ type: 'file_removed', at: buffer.at(), path, turnId: buffer.turnId })
    pending.set(path, null)
  }

  async function read({ path, hash }: FileStat): Promise<Uint8Array> {
    const bytes = blobs.get(hash)?.bytes ?? (await environment.store.blob(hash))
    if (bytes) return Uint8Array.from(bytes)
    throw new RuntimeError(`The content of ${path} in thread ${kernel.threadId} is gone.`, {
      code: 'FILE_NOT_FOUND',
    })
  }

  function list(prefix = '/'): FileStat[] {
    const from = prefix.normalize('NFC')
    return [...allOverlaid(pending, kernel.files).values()]
      .filter(({ path }) => path.startsWith(from))
      .sort((a, b) => (a.path < b.path ? -1 : 1))
  }

  return {
    // All methods that return promises are `async`, so that an error rejects the promise and is never
    // thrown directly.
    async writeFile(path, data, { mediaType } = {}) {
      const normal = normalisePath(path)
      // The bytes are copied, because the caller may change its own array later.
      const bytes =
        typeof data === 'string' ? new TextEncoder().encode(data) : Uint8Array.from(data)
      const { maxFileBytes } = environment.limits
      if (bytes.length > maxFileBytes)
        throw new RuntimeError(`The file ${normal} has ${bytes.length} bytes.`, {
          code: 'FILE_TOO_LARGE',
          hint: `At most ${maxFileBytes} are allowed; the limit is maxFileBytes of the runtime.`,
        })
      const hash = sha256Hex(bytes)
      blobs.set(hash, { hash, bytes })
      const type = mediaType ?? fileMediaType(normal, bytes)
      return put({ path: normal, mediaType: type, sizeBytes: bytes.length, hash })
    },
    readFile: async (path) => read(find(path)),
    readTextFile: async (path) => new TextDecoder().decode(await read(find(path))),
    statFile: (path) => overlaid(pending, kernel.files, normalisePath(path)),
    listFiles: list,
    removeFile: (path) => drop(find(path).path),
    moveFile(from, to) {
      const { writtenAt: _then, ...file } = find(from)
      const path = normalisePath(to)
      if (path === file.path) return
      put({ ...file, path })
      drop(file.path)
    },
    findFiles(pattern) {
      const isMatch = createGlob(pattern)
      return list().filter(({ path }) => isMatch(path))
    },
    async grepFiles(text, prefix) {
      const matches = []
      for (const stat of list(prefix)) {
        const bytes = await read(stat)
        if (isTextFile(bytes))
          matches.push(...linesWith(text, stat.path, new TextDecoder().decode(bytes)))
      }
      return matches
    },
    existing: (paths = []) => paths.map((path) => find(path).path),
    clear: () => pending.clear(),
  }
}

function linesWith(
  text: string,
  path: string,
  content: string,
): { path: string; line: number; text: string }[] {
  if (!content.includes(text)) return []
  return content
    .split(/\r?\n/)
    .map((line, index) => ({ path, line: index + 1, text: line }))
    .filter((line) => line.text.includes(text))
}
