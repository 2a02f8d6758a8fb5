import type { PayloadStore } from './audit-log.ts'
import type { Hash } from './envelope.ts'

/** Payloads in memory: for tests, and for runs that need not survive their process. */
export function memoryPayloads(): PayloadStore & { readonly erase: (hash: Hash) => void } {
  const texts = new Map<Hash, string>()
  return {
    put: (hash, text) => void texts.set(hash, text),
    get: (hash) => texts.get(hash),
    erase: (hash) => void texts.delete(hash),
  }
}
