import { parseJson } from '../json/json-parse.ts'
import { stringifyJson } from '../json/json-stringify.ts'
import { ThreadError } from '../issue.ts'
import { checkRecord, encodeRecord, isTorn, recordText } from './thread-log-record.ts'
import { LogConflictError, LogCorruptError } from './log-error.ts'
import type { LogStorage } from './log-storage.ts'
import type { Thread, Turn } from '../document/thread.ts'

export { LogConflictError, LogCorruptError } from './log-error.ts'
export { type LogStorage, MemoryLogStorage } from './log-storage.ts'

/**
 * A thread without its turns. `updated_at` is computed from the last turn, so that an append does not change
 * earlier lines.
 */
type ThreadLogHead = Omit<Thread, 'turns' | 'updated_at'>

/** Settings of `openThreadLog`. */
export interface OpenThreadLogOptions {
  /** The thread's own fields; required when the log is new, ignored otherwise. */
  readonly thread?: ThreadLogHead
  /**
   * Whether a log with a damaged line is cut off before that line; by default `LogCorruptError` is thrown.
   */
  readonly repair?: boolean
}

/** Settings of an append. */
interface LogAppendOptions {
  /**
   * The expected number of turns; if the log has another number, nothing is written and `LogConflictError` is
   * thrown.
   */
  readonly expectedLength?: number
  /**
   * Waits until the turn is on disk. By default a turn survives a crash of the process, but not a power cut.
   */
  readonly sync?: boolean
}

/**
 * Opens a log, or creates it. An incomplete last line, left by a crash during a write, is cut off, and
 * `recoveredBytes` is its length.
 */
export async function openThreadLog(
  storage: LogStorage,
  options: OpenThreadLogOptions = {},
): Promise<ThreadLog> {
  const bytes = await storage.read()
  const scan = scanLines(bytes, options.repair ?? false)
  const isNew = scan.lines.length === 0
  if (isNew && !options.thread) {
    throw new ThreadError('The thread log is empty and no thread was given to begin it with.', {
      code: 'LOG_EMPTY',
      hint: 'Pass { thread: { version, thread_id, created_at, agents } }.',
    })
  }
  const isCut =
    scan.size < bytes.length && (await storage.truncate(scan.size, bytes.length)) !== false
  if (options.repair && scan.size < bytes.length && !isCut)
    throw new LogConflictError(scan.lines.filter(({ isTurn }) => isTurn).length, undefined)
  // Without the cut, the size differs from that of the storage, so an append is a conflict until the log is reopened.
  const whole = isCut ? scan : { ...scan, droppedBytes: 0 }
  const log = new ThreadLog(storage, bytes.subarray(0, scan.size), whole)
  if (isNew) await log.update(options.thread!)
  return log
}

type LogRecord = { readonly thread: ThreadLogHead } | { readonly turn: Turn }

/**
 * An append-only log of a thread: the first line contains the thread's own fields, every further line
 * contains one turn, or new values of those fields.
 */
export class ThreadLog {
  readonly #storage: LogStorage
  readonly #bytes: Uint8Array
  /** Turns by position: the parsed turn, or the place of its line until it is first read. */
  readonly #turns: (Turn | Line)[] = []
  readonly #recoveredBytes: number
  #head: ThreadLogHead | undefined
  #size: number
  #sum: number
  #needsNewline: boolean
  #queue: Promise<unknown> = Promise.resolve()

  /** @internal */
  constructor(storage: LogStorage, bytes: Uint8Array, scan: Scan) {
    this.#storage = storage
    this.#bytes = bytes
    this.#size = scan.size
    this.#sum = scan.sum
    this.#needsNewline = scan.needsNewline
    this.#recoveredBytes = scan.droppedBytes
    for (const line of scan.lines) {
      if (line.isTurn) this.#turns.push(line)
      else this.#head = (this.#parse(line) as { thread: ThreadLogHead }).thread
    }
  }

  /** The number of turns. */
  get length(): number {
    return this.#turns.length
  }

  /**
   * The number of bytes that were cut off on opening: an incomplete last line or, with `repair`, everything
   * from the first damaged line on. 0 when nothing was cut off.
   */
  get recoveredBytes(): number {
    return this.#recoveredBytes
  }

  /** Returns one turn; it is parsed when it is first read. */
  turn(index: number): Turn | undefined {
    const entry = this.#turns.at(index)
    if (entry === undefined || !(entry instanceof Line)) return entry
    const { turn } = this.#parse(entry) as { turn: Turn }
    this.#turns[index < 0 ? this.#turns.length + index : index] = turn
    return turn
  }

  /** Returns the whole thread. */
  thread(): Thread {
    const turns = this.#turns.map((_, index) => this.turn(index)!)
    const last = turns.at(-1)
    const time = last && (last.turn_type === 'user' ? last.submitted_at : last.completed_at)
    const head = this.#head!
    return { ...head, updated_at: time ?? head.created_at, turns }
  }

  /** Adds a turn and returns the new number of turns. The cost does not depend on the length of the log. */
  append(turn: Turn, { expectedLength, sync = false }: LogAppendOptions = {}): Promise<number> {
    return this.#serialise(async () => {
      if (expectedLength !== undefined && expectedLength !== this.length) {
        throw new LogConflictError(expectedLength, this.length)
      }
      await this.#write({ turn })
      this.#turns.push(turn)
      if (sync) await this.#storage.sync()
      return this.length
    })
  }

  /** Replaces the thread's own fields, for example to change the title or to register an agent. */
  update(thread: ThreadLogHead): Promise<void> {
    return this.#serialise(async () => {
      await this.#write({ thread })
      this.#head = thread
    })
  }

  async sync(): Promise<void> {
    await this.#serialise(async () => this.#storage.sync())
  }

  async close(): Promise<void> {
    await this.#serialise(async () => this.#storage.close())
  }

  async #write(record: LogRecord): Promise<void> {
    const { bytes, sum } = encodeRecord(stringifyJson(record), this.#sum)
    let line = bytes
    if (this.#needsNewline) {
      line = new Uint8Array(bytes.length + 1)
      line[0] = 0x0a
      line.set(bytes, 1)
    }
    const outcome = this.#storage.append(line, this.#size)
    // `await` is used only for a promise: the append to a file is synchronous, and an unnecessary `await`
    // costs more time than the write.
    if (!(typeof outcome === 'boolean' ? outcome : await outcome)) {
      throw new LogConflictError(this.length, undefined)
    }
    this.#needsNewline = false
    this.#size += line.length
    this.#sum = sum
  }

  #parse(line: Line): unknown {
    return parseJson(recordText(this.#bytes, line.start, line.end)).value
  }

  /** Runs one operation after the other; a failed operation does not stop the next. */
  #serialise<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work)
    this.#queue = result.catch(() => undefined)
    return result
  }
}

/** The place of a line that has been checked but not parsed. */
class Line {
  readonly start: number
  readonly end: number
  readonly isTurn: boolean

  constructor(start: number, end: number, isTurn: boolean) {
    this.start = start
    this.end = end
    this.isTurn = isTurn
  }
}

interface Scan {
  readonly lines: Line[]
  /** The number of bytes in complete lines. */
  readonly size: number
  readonly sum: number
  readonly droppedBytes: number
  readonly needsNewline: boolean
}

/**
 * The byte at `MARK_OFFSET` in a line shows whether the line is a turn, without parsing it: it is the `u` of
 * `turn`; in `thread` it is the `h`.
 */
const TURN_MARK = 0x75
const MARK_OFFSET = '{"sum":"00000000","rec":{"t'.length

/**
 * Finds the lines and checks every sum. A last line without a line feed is kept if its sum is right, and cut
 * off if it is the beginning of a line. Anything else is damage, or a file that is no log: the function throws
 * or, with `repair`, stops before that line.
 */
function scanLines(bytes: Uint8Array, repair: boolean): Scan {
  const lines: Line[] = []
  let [start, sum] = [0, 0]
  while (start < bytes.length) {
    const feed = bytes.indexOf(0x0a, start)
    const end = feed < 0 ? bytes.length : feed
    const nextSum = checkRecord(bytes, start, end, sum)
    if (nextSum === undefined) {
      if (!repair && (feed >= 0 || !isTorn(bytes, start)))
        throw new LogCorruptError(lines.length + 1)
      break
    }
    lines.push(new Line(start, end, bytes[start + MARK_OFFSET] === TURN_MARK))
    sum = nextSum
    start = feed < 0 ? end : end + 1
  }
  const needsNewline = start === bytes.length && start > 0 && bytes[start - 1] !== 0x0a
  return { lines, size: start, sum, droppedBytes: bytes.length - start, needsNewline }
}
