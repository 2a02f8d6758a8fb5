import { wellFormed, wellFormedJson } from '@skein/base'
import { bytesInJson } from './bytes-json.ts'

/**
 * Converts a tool's result to the text that a model reads: a string unchanged, undefined as `''`,
 * everything else as JSON. Bytes are replaced by their size, errors by their name and message. Never
 * throws.
 */
export function resultText(result: unknown): string {
  if (typeof result === 'string') return wellFormed(result)
  try {
    // `this[key]` is the value before `toJSON`, which for a Buffer would list every byte.
    const readable = function (
      this: Record<string, unknown>,
      key: string,
      value: unknown,
    ): unknown {
      const original = this[key]
      if (ArrayBuffer.isView(original) || original instanceof ArrayBuffer) {
        return `[binary data, ${original.byteLength} bytes]`
      }
      if (original instanceof Error) return { name: original.name, message: original.message }
      if (typeof value === 'bigint') return value.toString()
      const bytes = bytesInJson(value)
      return bytes ? `[binary data, ${bytes.byteLength} bytes]` : value
    }
    return wellFormedJson(JSON.stringify(result, readable) ?? '')
  } catch (error) {
    return `[The result cannot be written as JSON: ${(error as Error).message.split('\n')[0]}]`
  }
}
