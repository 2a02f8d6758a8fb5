import { hash } from 'node:crypto'
import {
  closeSync,
  createReadStream,
  createWriteStream,
  openSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { crc32, createGunzip, createGzip } from 'node:zlib'
import { canonicalJson, isPlainObject, type JsonValue, tryParseJson } from '@skein/base'
import type { StoreRow } from '@skein/runtime'
import { CommandError } from '../terminal/command.ts'

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
  const found = hash('sha256', bytes)
  if (found !== name) throw damagedFile(`The content ${name} has the hash ${found}.`)
  return found
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

/** Writes rows into a new file that only its owner may read. After an error, the file is removed. */
export async function writeBackup(
  path: string,
  rows: AsyncIterable<StoreRow> | Iterable<StoreRow>,
  about: { readonly from: string; readonly at: string },
): Promise<RowDigest> {
  const digest = new RowDigest()
  try {
    closeSync(openSync(path, 'wx', 0o600)) // nobody else can take the name while the file is written
  } catch (cause) {
    const exists = (cause as NodeJS.ErrnoException).code === 'EEXIST'
    throw new CommandError(`${path} ${exists ? 'exists already' : 'cannot be created'}.`, {
      code: exists ? 'FILE_EXISTS' : 'FILE_UNWRITABLE',
      hint: 'Name a new file; a backup is never overwritten.',
      cause,
    })
  }
  const part = `${path}.part`
  try {
    const file = createWriteStream(part, { mode: 0o600, flush: true })
    const lines = Readable.from(chunksOf(linesOf(digest, rows, about)))
    if (path.endsWith('.gz')) await pipeline(lines, createGzip(), file)
    else await pipeline(lines, file)
    renameSync(part, path)
    return digest
  } catch (error) {
    for (const one of [part, path]) rmSync(one, { force: true })
    throw error
  }
}

async function* linesOf(
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
export async function* readBackup(path: string): AsyncGenerator<StoreRow, void, undefined> {
  const digest = new RowDigest()
  const parts: Buffer[] = []
  let number = 0
  let isComplete = false
  for await (const line of fileLines(path)) {
    const value = checkedLine(line, ++number)
    if (isComplete) throw damagedFile(`Line ${number} stands behind the end of the backup.`)
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

/** Collects the parts of a blob, which are on several lines; returns the blob with the last part. */
function wholeBlob(
  line: Readonly<Record<string, unknown>>,
  parts: Buffer[],
  number: number,
): Extract<StoreRow, { type: 'blob' }> | undefined {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  if (line['from'] !== length)
    throw damagedFile(`Line ${number} of the backup belongs to another place.`)
  parts.push(Buffer.from(String(line['data']), 'base64'))
  const bytes = Buffer.concat(parts)
  if (bytes.length < Number(line['of'])) return undefined
  parts.length = 0
  return { type: 'blob', hash: String(line['hash']), bytes }
}

/** Yields the lines of a file. Only a line feed ends a line, because texts may contain other line separators. */
async function* fileLines(path: string): AsyncGenerator<string, void, undefined> {
  const handle = await open(path).catch((cause: unknown) => {
    const isMissing = (cause as NodeJS.ErrnoException).code === 'ENOENT'
    throw new CommandError(`${path} cannot be read.`, {
      code: 'FILE_UNREADABLE',
      hint: `${isMissing ? 'The file does not exist. ' : ''}Name a file that \`skein backup\` has written.`,
      cause,
    })
  })
  const raw = createReadStream(path, { fd: handle, highWaterMark: 1024 * 1024 })
  const input: AsyncIterable<Buffer> = path.endsWith('.gz') ? raw.pipe(createGunzip()) : raw
  let rest: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of input) {
      let from = 0
      for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
        yield Buffer.concat([...rest, chunk.subarray(from, end)]).toString()
        rest = []
        bytes = 0
        from = end + 1
      }
      rest.push(chunk.subarray(from))
      bytes += chunk.length - from
      if (bytes > MAX_LINE_BYTES) throw damagedFile(`A line of ${path} is too long.`)
    }
  } catch (error) {
    if ((error as { code?: unknown }).code?.toString().startsWith('Z_'))
      throw damagedFile(`${path} cannot be unpacked.`)
    throw error
  } finally {
    raw.destroy()
  }
  if (bytes > 0) yield Buffer.concat(rest).toString()
}
