import { hash } from 'node:crypto'
import {
  closeSync,
  createReadStream,
  createWriteStream,
  existsSync,
  openSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Readable, pipeline as pipe } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { crc32, createGunzip, createGzip } from 'node:zlib'
import { canonicalJson, isPlainObject, type JsonValue, tryParseJson } from '@skein/base'
import type { StoreRow } from '@skein/runtime'
import { byteLines, TOO_LONG } from '../terminal/byte-lines.ts'
import { CommandError } from '../terminal/command.ts'
import type { OnProgress } from '../terminal/progress.ts'

/** The version of the backup format. A reader refuses files of a later version. */
const VERSION = 1
/** The most bytes of a blob that one line contains; a longer blob takes several lines. */
const PART_BYTES = 512 * 1024
/** Lines are collected and written together once they have about this many characters. */
const CHUNK_CHARS = 256 * 1024
const MAX_LINE_BYTES = 512 * 1024 * 1024

/** Counts the rows of each type, and computes a checksum over the contents of all rows of a type. */
export class RowDigest {
  readonly #counts = new Map<string, number>()
  readonly #sums = new Map<string, bigint>()

  /**
   * Adds a row. The order of the rows does not change the result, because two stores may keep them in
   * different orders. The bytes of a blob are first checked against its hash, which is also its name.
   */
  add(row: StoreRow): void {
    const digest = row.type === 'blob' ? contentHash(row) : hash('sha256', rowText(row))
    this.#counts.set(row.type, (this.#counts.get(row.type) ?? 0) + 1)
    const sum = (this.#sums.get(row.type) ?? 0n) + BigInt(`0x${digest}`)
    this.#sums.set(row.type, BigInt.asUintN(256, sum))
  }

  /** Yields the rows, and adds each of them to the digest. */
  async *of(
    rows: AsyncIterable<StoreRow> | Iterable<StoreRow>,
  ): AsyncGenerator<StoreRow, void, undefined> {
    for await (const row of rows) {
      this.add(row)
      yield row
    }
  }

  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts)
  }

  get sums(): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.#sums].map(([type, sum]) => [type, sum.toString(16)]))
  }

  /** Describes the types of rows whose number or checksum differs from that in another digest. */
  differences(other: Pick<RowDigest, 'counts' | 'sums'>): readonly string[] {
    const types = new Set([...Object.keys(this.sums), ...Object.keys(other.sums)])
    return [...types].flatMap((type) => {
      const [here, there] = [this.counts[type] ?? 0, other.counts[type] ?? 0]
      if (here !== there) return [`${here} of type ${type} instead of ${there}`]
      return this.sums[type] === other.sums[type] ? [] : [`a ${type} with other contents`]
    })
  }
}

function contentHash({ hash: name, bytes }: Extract<StoreRow, { type: 'blob' }>): string {
  const actual = hash('sha256', bytes)
  if (actual !== name) throw damagedFile(`The content ${name} has the hash ${actual}.`)
  return actual
}

/** Returns a text that is the same for the same row in any store. */
function rowText(row: StoreRow): string {
  return canonicalJson(row as unknown as JsonValue)
}

function damagedFile(message: string): CommandError {
  return new CommandError(message, {
    code: 'BACKUP_DAMAGED',
    hint: 'Nothing was restored from it. Use another copy of the backup.',
  })
}

/**
 * Writes rows into a new file that only its owner may read. It has its name only once it is complete and was read again;
 * after an error, or when the signal aborts, nothing of it is left.
 */
export async function writeBackup(
  path: string,
  rows: AsyncIterable<StoreRow> | Iterable<StoreRow>,
  about: { readonly from: string; readonly at: string },
  { signal, onCheck }: { readonly signal?: AbortSignal; readonly onCheck?: OnProgress } = {},
): Promise<RowDigest> {
  const digest = new RowDigest()
  if (existsSync(path)) throw existingFile(path, 'Name a new file; a backup is never overwritten.')
  const isPacked = path.endsWith('.gz')
  const part = `${path}.part`
  create(part, 'Another backup is writing it, or was killed; if it was killed, remove the file.')
  try {
    const file = createWriteStream(part, { mode: 0o600, flush: true })
    const lines = Readable.from(chunksOf(backupLines(digest, rows, about)))
    if (isPacked) await pipeline(lines, createGzip(), file, { signal })
    else await pipeline(lines, file, { signal })
    // What is on the disk may differ from what was written.
    for await (const _ of readBackup(part, { isPacked, onRead: onCheck })) signal?.throwIfAborted()
    create(path, 'Another program created it in the meantime. Name a new file.')
    renameSync(part, path)
    return digest
  } catch (error) {
    rmSync(part, { force: true })
    throw error
  }
}

/** Creates an empty file. Throws if there is one. */
function create(path: string, hint: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') throw existingFile(path, hint)
    const folder = dirname(path)
    throw new CommandError(`${path} cannot be created.`, {
      code: 'FILE_UNWRITABLE',
      hint: existsSync(folder)
        ? 'Name a file in a folder that you may write to.'
        : `There is no folder ${folder}.`,
      cause,
    })
  }
}

function existingFile(path: string, hint: string): CommandError {
  return new CommandError(`${path} exists already.`, { code: 'FILE_EXISTS', hint })
}

async function* backupLines(
  digest: RowDigest,
  rows: AsyncIterable<StoreRow> | Iterable<StoreRow>,
  about: { readonly from: string; readonly at: string },
): AsyncGenerator<string, void, undefined> {
  let number = 0
  const line = (value: object): string => {
    const text = JSON.stringify(value)
    return `${text.slice(0, -1)},"sum":"${lineSum(++number, text)}"}\n`
  }
  yield line({ type: 'skein-backup', version: VERSION, ...about })
  for await (const row of digest.of(rows)) {
    if (row.type !== 'blob') {
      yield line(row)
      continue
    }
    const { hash: name, bytes } = row
    for (let from = 0, isFirst = true; isFirst || from < bytes.length; from += PART_BYTES) {
      isFirst = false
      const data = Buffer.from(bytes.subarray(from, from + PART_BYTES)).toString('base64')
      yield line({ type: 'blob', hash: name, from, of: bytes.length, data })
    }
  }
  yield line({ type: 'end', counts: digest.counts, sums: digest.sums })
}

/** The checksum of a line. It also depends on the line's number, so that a missing line is noticed. */
function lineSum(number: number, text: string): string {
  return crc32(text, number).toString(16).padStart(8, '0')
}

async function* chunksOf(lines: AsyncIterable<string>): AsyncGenerator<string, void, undefined> {
  let pieces: string[] = []
  let chars = 0
  for await (const line of lines) {
    pieces.push(line)
    chars += line.length
    if (chars < CHUNK_CHARS) continue
    yield pieces.join('')
    pieces = []
    chars = 0
  }
  yield pieces.join('')
}

/**
 * Yields the rows of a backup. Throws at the first damaged line, and at the end if something is
 * missing. So use the rows only after all of them were read without an error.
 */
export async function* readBackup(
  path: string,
  {
    isPacked = path.endsWith('.gz'),
    onRead,
  }: { readonly isPacked?: boolean; readonly onRead?: OnProgress } = {},
): AsyncGenerator<StoreRow, void, undefined> {
  const digest = new RowDigest()
  const parts: BlobParts = { list: [], bytes: 0 }
  let number = 0
  let isComplete = false
  for await (const line of fileLines(path, isPacked, onRead)) {
    const value = checkedLine(line, ++number)
    if (isComplete) throw damagedFile(`Line ${number} follows the end of the backup.`)
    if (number === 1) checkFirst(value, path)
    else if (value['type'] === 'end') {
      const { counts, sums } = value as unknown as Pick<RowDigest, 'counts' | 'sums'>
      const missing = digest.differences({ counts, sums })
      if (missing.length > 0) throw damagedFile(`The backup has ${missing.join(', ')}.`)
      isComplete = true
    } else {
      const row = value['type'] === 'blob' ? wholeBlob(value, parts, number) : value
      if (!row) continue
      digest.add(row as unknown as StoreRow) // the checksum shows that `writeBackup` wrote it
      yield row as unknown as StoreRow
    }
  }
  if (!isComplete)
    throw damagedFile(`The backup ${path} ends after line ${number}: its end is missing.`)
}

function checkFirst(value: Readonly<Record<string, unknown>>, path: string): void {
  if (value['type'] !== 'skein-backup') throw damagedFile(`${path} is not a backup of Skein.`)
  if (Number(value['version']) > VERSION)
    throw new CommandError(`The backup ${path} has version ${String(value['version'])}.`, {
      code: 'BACKUP_VERSION',
      hint: `A newer version of the command wrote it; this one knows ${VERSION}. Update it.`,
    })
}

/** Parses a line, after comparing it with its checksum. */
function checkedLine(line: string, number: number): Readonly<Record<string, unknown>> {
  const [, text, sum] = /^(.*),"sum":"([0-9a-f]{8})"\}$/s.exec(line) ?? []
  const value = text === undefined ? undefined : tryParseJson(`${text}}`)
  if (!isPlainObject(value) || lineSum(number, `${text}}`) !== sum)
    throw damagedFile(`Line ${number} of the backup is damaged: its checksum is wrong.`)
  return value
}

/** The parts of a blob that were read so far: they are on several lines. */
interface BlobParts {
  list: Buffer[]
  bytes: number
}

/** Adds the part of a blob on a line; returns the blob with the last part. */
function wholeBlob(
  line: Readonly<Record<string, unknown>>,
  parts: BlobParts,
  number: number,
): Extract<StoreRow, { type: 'blob' }> | undefined {
  if (line['from'] !== parts.bytes)
    throw damagedFile(`Line ${number} of the backup is out of place.`)
  const part = Buffer.from(String(line['data']), 'base64')
  parts.list.push(part)
  parts.bytes += part.length
  if (parts.bytes < Number(line['of'])) return undefined
  const bytes = Buffer.concat(parts.list) // once for all parts, so the cost is linear
  parts.list = []
  parts.bytes = 0
  return { type: 'blob', hash: String(line['hash']), bytes }
}

/** Yields the lines of a file. */
async function* fileLines(
  path: string,
  isPacked: boolean,
  onRead?: OnProgress,
): AsyncGenerator<string, void, undefined> {
  const handle = await open(path).catch((cause: unknown) => {
    throw unreadable(path, cause)
  })
  const { size } = await handle.stat()
  const raw = createReadStream(path, { fd: handle, highWaterMark: 1024 * 1024 })
  // `pipeline` passes an error of the file on to the stream that is read; `pipe` would leave it uncaught.
  const input = isPacked ? pipe(raw, createGunzip(), () => undefined) : raw
  try {
    for await (const line of byteLines(input, MAX_LINE_BYTES)) {
      if (line === TOO_LONG) throw damagedFile(`A line of ${path} is too long.`)
      onRead?.(raw.bytesRead, size)
      yield line
    }
  } catch (error) {
    const { code } = error as { readonly code?: unknown }
    if (String(code).startsWith('Z_')) throw damagedFile(`${path} cannot be unpacked.`)
    throw (error as { readonly syscall?: unknown }).syscall === 'read'
      ? unreadable(path, error)
      : error
  } finally {
    raw.destroy()
  }
}

function unreadable(path: string, cause: unknown): CommandError {
  const code = String((cause as NodeJS.ErrnoException).code)
  const isMissing = code === 'ENOENT'
  return new CommandError(`${path} cannot be read${isMissing ? '' : `: ${code}`}.`, {
    code: 'FILE_UNREADABLE',
    hint: `${isMissing ? 'The file does not exist. ' : ''}Name a file that \`skein backup\` has written.`,
    cause,
  })
}
