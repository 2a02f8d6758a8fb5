import type { VendorAnswer } from './attempt.ts'
import type { AnswerReader } from './vendor-run.ts'

/** The readers between which `chooseReader` decides. */
interface Readers<T> {
  readonly isStreaming: boolean
  readonly framing: 'sse' | 'ndjson' | 'binary'
  /** Makes the reader of a body that is one JSON value; a web page or other text becomes an error. */
  readonly whole: () => AnswerReader<readonly T[]>
  readonly frames: () => AnswerReader<readonly T[]>
}

/**
 * Chooses the reader that fits the actual body. Some servers stream although they were not asked to, others do not
 * stream although they were asked to, and some label a stream as JSON. In doubtful cases the first bytes decide.
 */
export function chooseReader<T>(
  answer: VendorAnswer,
  readers: Readers<T>,
): AnswerReader<readonly T[]> | Promise<AnswerReader<readonly T[]>> {
  const { isStreaming, framing, whole, frames } = readers
  const type = answer.headers.get('content-type') ?? ''
  if (!isStreaming) {
    if (framing === 'binary') return whole()
    if (!/^\s*(text\/event-stream|application\/(x-ndjson|jsonl))/i.test(type)) return whole()
    return framing === 'ndjson' ? drained(frames()) : byFirstBytes(answer, readers)
  }
  if (/^\s*text\/html/i.test(type)) return whole()
  // One JSON value is also a valid NDJSON stream of one line, so `frames` reads it too.
  if (framing === 'binary') return byFirstBytes(answer, readers)
  if (framing === 'ndjson' || !/^\s*application\/json/i.test(type)) return frames()
  return byFirstBytes(answer, readers)
}

async function byFirstBytes<T>(
  answer: VendorAnswer,
  { isStreaming, whole, frames }: Readers<T>,
): Promise<AnswerReader<readonly T[]>> {
  const start = new TextDecoder().decode((await answer.peek())?.subarray(0, 64)).trimStart()
  if (start === '' || /^[{[<]/.test(start)) return whole()
  return isStreaming ? frames() : drained(frames())
}

/** Returns a reader that reads a whole stream and returns all its events in one batch. */
function drained<T>(frames: AnswerReader<readonly T[]>): AnswerReader<readonly T[]> {
  let isDone = false
  return {
    async next() {
      if (isDone) return undefined
      isDone = true
      const all: T[] = []
      for (;;) {
        const batch = await frames.next()
        if (!batch) return all
        for (const item of batch) all.push(item)
      }
    },
  }
}
