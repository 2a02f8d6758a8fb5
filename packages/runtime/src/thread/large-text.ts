import type { RuntimeLimits } from '../contract/limits.ts'

/** A text that is too large for a request to a model. */
export interface CutText {
  /** What goes into the file: the whole text, or as much as a file may have. */
  readonly kept: Uint8Array
  /** The text for the model: the beginning, a line that names the file at `path`, and the end. */
  shown(path: string): string
}

/** Cuts a text that has more than `maxToolResultBytes`; undefined if it has not. */
export function cutLargeText(
  text: string,
  { maxToolResultBytes, maxFileBytes }: RuntimeLimits,
): CutText | undefined {
  if (text.length * 3 <= maxToolResultBytes) return undefined
  const whole = Buffer.from(text)
  if (whole.length <= maxToolResultBytes) return undefined
  const content = whole.subarray(0, edgeOf(whole, maxFileBytes))
  const head = whole.subarray(0, edgeOf(whole, Math.floor(maxToolResultBytes * 0.6)))
  const tail = whole.subarray(edgeOf(whole, whole.length - Math.floor(maxToolResultBytes * 0.3)))
  const leftOut = whole.length - head.length - tail.length
  const file =
    content.length === whole.length
      ? 'The whole result is'
      : `The first ${content.length} bytes are`
  return {
    kept: content,
    shown: (path) => {
      const note = `[${leftOut} bytes are left out here. ${file} in the file ${path} of this thread.]`
      return `${head.toString()}\n\n${note}\n\n${tail.toString()}`
    },
  }
}

/** Returns the last position up to `index` at which UTF-8 text can be cut. */
function edgeOf(bytes: Uint8Array, index: number): number {
  let edge = Math.min(index, bytes.length)
  while (edge > 0 && edge < bytes.length && (bytes[edge]! & 0xc0) === 0x80) edge--
  return edge
}
