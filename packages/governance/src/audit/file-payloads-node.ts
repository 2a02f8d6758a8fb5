import { randomUUID } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { PayloadStore } from '../audit-log.ts'
import type { Hash } from '../envelope.ts'

/** Payloads that can be erased one by one. */
export interface ErasablePayloads extends PayloadStore {
  /** Forgets a payload; the log goes on to verify. True if there was one. */
  erase(hash: Hash): Promise<boolean>
}

/** Payloads as files in a folder, apart from the log. Equal payloads are stored once. */
export function filePayloads({ dir }: { readonly dir: string }): ErasablePayloads {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const pathOf = (hash: Hash): string => join(dir, hash.replace(/^sha256:/, ''))
  return {
    async put(hash, text, { durable = false } = {}) {
      const path = pathOf(hash)
      const draft = `${path}.${randomUUID()}`
      const file = await open(draft, 'wx', 0o600)
      try {
        await file.writeFile(text)
        if (durable) await file.datasync()
      } finally {
        await file.close()
      }
      // Whole or not at all: a reader never meets half a payload.
      await rename(draft, path)
      if (durable) await syncFolder(dir)
    },
    async get(hash) {
      try {
        return await readFile(pathOf(hash), 'utf8')
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
        throw error
      }
    },
    async erase(hash) {
      try {
        await rm(pathOf(hash))
        return true
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
        throw error
      }
    },
  }
}

async function syncFolder(dir: string): Promise<void> {
  try {
    const folder = await open(dir, 'r')
    await folder.sync()
    await folder.close()
  } catch {
    // Windows does not open folders, and needs no such thing.
  }
}
