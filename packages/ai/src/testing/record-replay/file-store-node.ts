import type * as Files from 'node:fs/promises'
import { RecordingError, type Recording, type RecordingStore } from './recording.ts'

interface ProcessLike {
  getBuiltinModule?(name: 'node:fs/promises'): typeof Files
}

/** Stores a recording in a JSON file, on Node, Bun and Deno. */
export function fileStore(path: string): RecordingStore {
  return {
    async load() {
      try {
        return JSON.parse(await filesFor(path).readFile(path, 'utf8')) as Recording
      } catch (error) {
        if ((error as { code?: string }).code === 'ENOENT') return undefined
        throw error
      }
    },
    async save(recording) {
      const files = filesFor(path)
      const folder = path.slice(0, Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1)
      if (folder !== '') await files.mkdir(folder, { recursive: true })
      await files.writeFile(path, `${JSON.stringify(recording, null, 2)}\n`)
    },
  }
}

function filesFor(path: string): typeof Files {
  const { process } = globalThis as { process?: ProcessLike }
  const files = process?.getBuiltinModule?.('node:fs/promises')
  if (files) return files
  throw new RecordingError(`The recording ${JSON.stringify(path)} cannot be kept in a file here.`, {
    code: 'NO_FILES',
    hint: 'Use memoryRecordings, or a store of your own.',
  })
}
