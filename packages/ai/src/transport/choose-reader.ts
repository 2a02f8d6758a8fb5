import type { Answer } from './attempt.ts'
import type { AnswerReader } from './vendor-run.ts'

/** The ways in which an answer can be read. */
export interface Readers<T> {
  readonly isStreaming: boolean
  readonly framing: 'sse' | 'ndjson'
  /** One JSON value, or a page that says what went wrong. */
  readonly whole: () => AnswerReader<readonly T[]>
  readonly frames: () => AnswerReader<readonly T[]>
}

/**
 * Reads an answer as what it is. Some servers stream unasked or not at all, and some call it JSON
 * either way; only then are the first bytes looked at.
 */
export function chooseReader<T>(
  answer: Answer,
  readers: Readers<T>,
): AnswerReader<readonly T[]> | Promise<AnswerReader<readonly T[]>> {
  const { isStreaming, framing, whole, frames } = readers
  const type = answer.headers.get('content-type') ?? ''
  if (!isStreaming) {
    if (!/^\s*(text\/event-stream|application\/(x-ndjson|jsonl))/i.test(type)) return whole()
    return framing === 'ndjson' ? drained(frames()) : byFirstBytes(answer, readers)
  }
  if (/^\s*text\/html/i.test(type)) return whole()
  // One line of JSON is a stream of one line.
  if (framing === 'ndjson' || !/^\s*application\/json/i.test(type)) return frames()
  return byFirstBytes(answer, readers)
}

async function byFirstBytes<T>(
  answer: Answer,
  { isStreaming, whole, frames }: Readers<T>,
): Promise<AnswerReader<readonly T[]>> {
  const start = new TextDecoder().decode((await answer.peek())?.subarray(0, 64)).trimStart()
  if (start === '' || /^[{[<]/.test(start)) return whole()
  return isStreaming ? frames() : drained(frames())
}

/** Everything a stream gives, at once. */
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
