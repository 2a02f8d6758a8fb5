import type { Output } from '../src/terminal/output.ts'

/** What a command has written, for tests that run it in their own process. */
export interface Captured {
  readonly output: Output
  readonly lines: string[]
  readonly said: string[]
  readonly statuses: string[]
  readonly values: unknown[]
}

/** Creates an output that keeps everything that is written to it. */
export function capturedOutput(): Captured {
  const lines: string[] = []
  const said: string[] = []
  const statuses: string[] = []
  const values: unknown[] = []
  const output: Output = {
    data: (text) => void lines.push(text),
    piece: (text) => void lines.push(text),
    line: (text) => void lines.push(text),
    endLine: () => undefined,
    json: (value) => void values.push(value),
    jsonLines: (text) => void lines.push(text),
    say: (text) => void said.push(text),
    prompt: (text) => text,
    status: (text) => void statuses.push(text),
    paint: (_, text) => text,
    closed: new AbortController().signal,
    isTerminal: false,
    columns: 80,
    flush: async () => undefined,
  }
  return { output, lines, said, statuses, values }
}
