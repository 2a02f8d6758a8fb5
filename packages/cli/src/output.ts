import { styleText } from 'node:util'

type Style = Parameters<typeof styleText>[0]

/** The only place that writes: data to standard output, words to standard error. */
export interface Output {
  /** Data as it stands, without a newline. */
  data(text: string): void
  /** A line of data. */
  line(text: string): void
  /** Ends a line of data that is open, where words might follow it. */
  endLine(): void
  /** One JSON value on one line. */
  json(value: unknown): void
  /** A line of words. */
  say(text: string): void
  /** The line at the bottom that is written over; only a terminal has one. */
  status(text: string): void
  /** Colours words, where colours are wanted. */
  paint(style: Style, text: string): string
  /** Colours data. */
  paintData(style: Style, text: string): string
  /** Aborts when nobody reads the data any more. */
  readonly closed: AbortSignal
  /** Whether a person sees the data as it comes. */
  readonly isTerminal: boolean
  /** Resolves when everything is written. */
  flush(): Promise<void>
}

const STATUS_MS = 100

/** Writes to the streams of the process. */
export function createOutput(options: { readonly noColor: boolean }): Output {
  return new ProcessOutput(options.noColor)
}

class ProcessOutput implements Output {
  readonly isTerminal: boolean = process.stdout.isTTY === true
  readonly #closed = new AbortController()
  readonly #noColor: boolean
  readonly #hasStatus: boolean = process.stderr.isTTY === true
  /** Whether data ended in the middle of a line, on the same terminal as the words. */
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
    if (text === '' || this.closed.aborted) return
    this.#clearStatus()
    process.stdout.write(text)
    this.#isMidLine = this.isTerminal && !text.endsWith('\n')
  }

  line(text: string): void {
    this.data(`${text}\n`)
  }

  endLine(): void {
    if (this.#isMidLine) this.data('\n')
  }

  json(value: unknown): void {
    this.line(JSON.stringify(value))
  }

  say(text: string): void {
    this.#clearStatus()
    if (this.#isMidLine && this.#hasStatus) process.stderr.write('\n')
    this.#isMidLine = false
    process.stderr.write(`${text}\n`)
  }

  status(text: string): void {
    if (!this.#hasStatus || this.#isMidLine) return
    const now = performance.now()
    if (now - this.#statusAt < STATUS_MS) return
    this.#statusAt = now
    this.#clearStatus()
    // A line that wraps could not be taken back.
    this.#status = text.slice(0, Math.max((process.stderr.columns ?? 80) - 1, 1))
    process.stderr.write(this.#status)
  }

  paint(style: Style, text: string): string {
    return this.#color(process.stderr, style, text)
  }

  paintData(style: Style, text: string): string {
    return this.#color(process.stdout, style, text)
  }

  async flush(): Promise<void> {
    this.#clearStatus()
    await Promise.all([process.stdout, process.stderr].map(flushed))
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

  /** A reader that left is no error; there is just nothing more to write. */
  #broken(error: NodeJS.ErrnoException): void {
    if (error.code !== 'EPIPE' && error.code !== 'ERR_STREAM_DESTROYED') throw error
    this.#closed.abort()
  }
}

function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed || stream.writableEnded) resolve()
    else stream.write('', () => resolve())
  })
}
