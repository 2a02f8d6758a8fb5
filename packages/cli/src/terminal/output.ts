import { styleText } from 'node:util'
import { escapeJson, safeJson, safeText, SafeTextStream } from '@skein/base/safe-text'

/** The styles that the command uses; a subset of those of `styleText`. */
type Style = 'bold' | 'cyan' | 'dim' | 'green' | 'red' | 'yellow'

/**
 * The only code that writes to the terminal: results to standard output, messages to standard error. Text
 * may come from a model, a tool or a file, so all of it is made safe here (`safeText`); only `paint` adds
 * commands for the terminal.
 */
export interface Output {
  /** Writes a piece of the result, without a newline. Its end, e.g. half of an emoji, may wait for the next piece. */
  data(text: string): void
  /** Writes a piece of the result that may contain colours (`paint`), without a newline. Pass whole words only. */
  piece(text: string): void
  /** Writes a line of the result. */
  line(text: string): void
  /** Ends an unfinished line of the result, so that messages start on a new line. */
  endLine(): void
  /** Writes one JSON value on one line of the result. Unsafe characters are written as JSON escapes. */
  json(value: unknown): void
  /**
   * Writes lines of JSON that programs read again byte by byte, such as an exported log. A terminal gets
   * unsafe characters as JSON escapes; a pipe or a file gets the text as it is.
   */
  jsonLines(text: string): void
  /** Writes a line to standard error. */
  say(text: string): void
  /** Returns the text as `say` would write it, for code that writes to standard error by itself. */
  prompt(text: string): string
  /**
   * Replaces the status line at the bottom of a terminal, unless the last one is too new. `isFirst`: the line is the first
   * of other work, and is shown in any case. Does nothing if standard error is no terminal.
   */
  status(text: string, isFirst?: boolean): void
  /** Colours a part of a text for `line`, `say` or `prompt`, if the stream that gets it supports colours. */
  paint(style: Style, text: string): string
  /** Aborts when the program that reads standard output has closed it, as in `skein … | head`. */
  readonly closed: AbortSignal
  /** Whether standard output is a terminal. */
  readonly isTerminal: boolean
  /** The width of that terminal. */
  readonly columns: number
  /** Resolves when everything is written. */
  flush(): Promise<void>
}

const STATUS_MS = 100

/** Creates the output of this process. */
export function createOutput(options: { readonly noColor: boolean }): Output {
  return new ProcessOutput(options.noColor)
}

class ProcessOutput implements Output {
  readonly isTerminal: boolean = process.stdout.isTTY === true
  readonly #closed = new AbortController()
  readonly #noColor: boolean
  readonly #hasStatus: boolean = process.stderr.isTTY === true
  /**
   * A random mark around painted text, until the text around it was made safe. No text from outside can contain it.
   * Empty before the first use of `paint`, because Node's cryptography takes 5 ms to load.
   */
  #mark = ''
  readonly #pieces = new SafeTextStream()
  /** Whether the result ends without a newline so far, on a terminal that also shows messages. */
  #isMidLine = false
  #status = ''
  #statusAt = 0

  constructor(noColor: boolean) {
    this.#noColor = noColor
    for (const stream of [process.stdout, process.stderr])
      stream.on('error', (error: NodeJS.ErrnoException) => this.#broken(error))
  }

  get closed(): AbortSignal {
    return this.#closed.signal
  }

  data(text: string): void {
    this.#write(this.#pieces.push(text))
  }

  get columns(): number {
    return process.stdout.columns ?? 80
  }

  piece(text: string): void {
    this.#endPieces()
    this.#write(this.#render(process.stdout, text))
  }

  line(text: string): void {
    this.#endPieces()
    this.#write(`${this.#render(process.stdout, text)}\n`)
  }

  endLine(): void {
    this.#endPieces()
    if (this.#isMidLine) this.#write('\n')
  }

  json(value: unknown): void {
    this.jsonLines(safeJson(value))
  }

  jsonLines(text: string): void {
    this.#endPieces()
    this.#write(`${this.isTerminal ? escapeJson(text) : text}\n`)
  }

  say(text: string): void {
    this.#endPieces()
    this.#clearStatus()
    if (this.#isMidLine && this.#hasStatus) process.stderr.write('\n')
    this.#isMidLine = false
    process.stderr.write(`${this.prompt(text)}\n`)
  }

  prompt(text: string): string {
    return this.#render(process.stderr, text)
  }

  status(text: string, isFirst = false): void {
    if (!this.#hasStatus || this.#isMidLine) return
    const now = performance.now()
    if (!isFirst && now - this.#statusAt < STATUS_MS) return
    this.#statusAt = now
    this.#clearStatus()
    // A line that wraps cannot be overwritten, so the status is cut to the width of the terminal.
    const width = Math.max((process.stderr.columns ?? 80) - 1, 1)
    this.#status = safeText(text, { isLine: true }).slice(0, width)
    process.stderr.write(this.#status)
  }

  paint(style: Style, text: string): string {
    this.#mark ||= crypto.randomUUID()
    return `${this.#mark}${style} ${text}${this.#mark}`
  }

  async flush(): Promise<void> {
    this.#endPieces()
    this.#clearStatus()
    const flush = (stream: NodeJS.WriteStream): Promise<void> =>
      new Promise((resolve) => {
        if (stream.destroyed || stream.writableEnded) resolve()
        else stream.write('', () => resolve())
      })
    await Promise.all([process.stdout, process.stderr].map(flush))
  }

  #endPieces(): void {
    this.#write(this.#pieces.end())
  }

  /** Writes text to standard output that was already made safe. */
  #write(text: string): void {
    if (text === '' || this.closed.aborted) return
    this.#clearStatus()
    process.stdout.write(text)
    this.#isMidLine = this.isTerminal && !text.endsWith('\n')
  }

  /** Makes text safe, and colours the parts between two marks of `paint`: every second part. */
  #render(stream: NodeJS.WriteStream, text: string): string {
    if (this.#mark === '') return safeText(text)
    const parts = text.split(this.#mark).map((part, index) => {
      if (index % 2 === 0) return safeText(part)
      const space = part.indexOf(' ')
      const style = part.slice(0, space) as Style // written by `paint`
      return this.#color(stream, style, safeText(part.slice(space + 1)))
    })
    return parts.join('')
  }

  #color(stream: NodeJS.WriteStream, style: Style, text: string): string {
    const { NO_COLOR, FORCE_COLOR, TERM } = process.env
    if (this.#noColor || (NO_COLOR ?? '') !== '') return text
    const isForced = FORCE_COLOR !== undefined && FORCE_COLOR !== '0'
    const isWanted = isForced || (FORCE_COLOR !== '0' && stream.isTTY && TERM !== 'dumb')
    return isWanted ? styleText(style, text, { validateStream: false }) : text
  }

  #clearStatus(): void {
    if (this.#status !== '') process.stderr.write(`\r${' '.repeat(this.#status.length)}\r`)
    this.#status = ''
  }

  /** Handles a write error. If the reading program has closed the pipe, that is no failure; `closed` is aborted. */
  #broken(error: NodeJS.ErrnoException): void {
    if (error.code !== 'EPIPE' && error.code !== 'ERR_STREAM_DESTROYED') throw error
    this.#closed.abort()
  }
}
