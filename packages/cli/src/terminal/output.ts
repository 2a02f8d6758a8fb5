import { styleText } from 'node:util'
import { escapeJson, safeJson, safeText, SafeTextStream, callText } from '@skein/base/safe-text'
import type { Problem, WaitingItem } from '@skein/runtime'
import { isPlainObject } from '@skein/base'

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
    const flushed = (stream: NodeJS.WriteStream): Promise<void> =>
      new Promise((resolve) => {
        if (stream.destroyed || stream.writableEnded) resolve()
        else stream.write('', () => resolve())
      })
    await Promise.all([process.stdout, process.stderr].map(flushed))
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

/** The longest cell of a table, e.g. the title of a thread, in characters. */
const MAX_CELL_CHARS = 120

/** Formats rows as aligned columns. */
export function textTable(cells: readonly (readonly string[])[]): string[] {
  const rows = cells.map((row) => row.map((cell) => lineText(cell)))
  const widths = rows.reduce<number[]>((found, row) => {
    row.forEach((cell, index) => (found[index] = Math.max(found[index] ?? 0, cell.length)))
    return found
  }, [])
  return rows.map((row) =>
    row
      .map((cell, index) => (index === row.length - 1 ? cell : cell.padEnd(widths[index]!)))
      .join('  '),
  )
}

/** Makes a value safe for a line or a table: a single line, so that it cannot look like several. */
export function lineText(text: string): string {
  return safeText(text, { isLine: true, maxChars: MAX_CELL_CHARS })
}

/**
 * Indents all lines except the first, so that a text of several lines cannot look like output of the command itself.
 */
export function indented(text: string): string {
  return safeText(text).replaceAll('\n', '\n  ')
}

/** Formats how long ago something was, in one unit. */
export function timeAgo(at: string, now: number = Date.now()): string {
  const seconds = Math.max(Math.round((now - Date.parse(at)) / 1000), 0)
  if (seconds < 60) return `${seconds} s ago`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`
  return `${Math.floor(seconds / 86_400)} d ago`
}

/** Formats a problem of a definition with its file and field. */
export function problemLine({ subject, field, message, file }: Problem): string {
  const place = file === undefined || file === subject ? subject : `${file}: ${subject}`
  return `${place}: ${field === '' ? '' : `${field}: `}${message}`
}

/** Formats a cost in US dollars; null means unknown. */
export function costText(costUsd: number | null): string {
  return costUsd === null ? 'cost unknown' : `cost $${costUsd.toFixed(4)}`
}

/** Formats a duration. */
export function formatDuration(ms: number): string {
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** Returns the message of an error. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Returns the question about a waiting call, and the commands that answer it. */
export function waitingLines(item: WaitingItem): string[] {
  const { threadId, interruptId, toolName, kind, path } = item
  const about = riskText(item)
  const call = callText(toolName, item.arguments)
  const from = path.length > 1 ? `${lineText(path.join(' › '))}: ` : ''
  if (kind === 'input') return [`waiting for an answer: ${from}${call}`]
  if (kind === 'in_doubt')
    return [
      `in doubt, because the process died during the call: ${from}${call}${about === '' ? '' : ` (${about})`}`,
      `  skein settle ${threadId} ${interruptId} --found applied`,
      `  skein settle ${threadId} ${interruptId} --found absent`,
    ]
  return [
    `waiting for approval: ${from}${call}${about === '' ? '' : ` (${about})`}`,
    ...sentLines(item),
    `  skein approve ${threadId} ${interruptId}`,
    `  skein deny ${threadId} ${interruptId} --reason "…"`,
  ]
}

/** Says what the model sent, if the tool has made other arguments of it. */
export function sentLines({ toolName, sentArguments }: WaitingItem): string[] {
  if (sentArguments === undefined) return []
  return [`  the model sent: ${callText(toolName, sentArguments)}`]
}

/** Returns the risk of a waiting call, and how the call can be undone; empty if neither is known. */
export function riskText({ risk, isIrreversible, request }: WaitingItem): string {
  const undo = isIrreversible ? 'cannot be undone' : undoText(request?.action.rollback)
  return [risk ?? '', undo].filter((text) => text !== '').join(', ')
}

/** Returns how a call can be undone; empty if nothing is known about that. */
export function undoText(rollback: unknown): string {
  if (!isPlainObject(rollback)) return ''
  const { type, target, payload } = rollback
  if (type === 'impossible') return 'cannot be undone'
  if (type === 'manual') return 'undone by hand'
  return typeof target === 'string' ? `undone by ${callText(target, payload ?? {})}` : ''
}
