import { decodeBase64, encodeBase64 } from '@skein/base'
import type { RecordedChunk } from './recording.ts'

/** One network read. A read that ends inside a character is kept as base64, so nothing is lost. */
export function toRecordedChunk(bytes: Uint8Array): RecordedChunk {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    return { text }
  } catch {
    return { base64: encodeBase64(bytes) }
  }
}

export function fromRecordedChunk(chunk: RecordedChunk): Uint8Array {
  return 'text' in chunk ? new TextEncoder().encode(chunk.text) : decodeBase64(chunk.base64)
}
