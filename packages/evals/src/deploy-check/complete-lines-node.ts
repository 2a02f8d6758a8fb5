import { createReadStream } from 'node:fs'

/** A line of a file that has its end. */
export interface CompleteLine {
  readonly text: string
  /** The place in the file after the line's end, in bytes. */
  readonly endsAt: number
}

/** Reads the lines of a file that end in a line feed; a rest without one is left out. */
export async function* completeLines(path: string): AsyncGenerator<CompleteLine> {
  let begun: Buffer[] = []
  let endsAt = 0
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let start = 0
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, start)) {
      const line = Buffer.concat([...begun, chunk.subarray(start, end)])
      begun = []
      start = end + 1
      endsAt += line.length + 1
      yield { text: line.toString('utf8'), endsAt }
    }
    begun.push(chunk.subarray(start))
  }
}

const LF = 0x0a
