import { join } from 'node:path'
import { sha256, SkeinError } from '@skein/base'
import { parseCheckpoint, type ParsedCheckpoint } from './checkpoint.ts'
import type { Envelope } from '../contract/envelope.ts'
import { splitLines } from './log-lines.ts'
import { LogSequences } from './memory-log.ts'
import { CompactRange, isEqualHash } from './merkle.ts'
import { type LogVerdict, verifyLog, type VerifyLogOptions } from './verify-log.ts'
import { open } from 'node:fs/promises'

/** The state of a log that was read from its files when it was opened. */
export interface RestoredLog {
  readonly tree: CompactRange
  readonly sequences: LogSequences
  /** Length of all complete lines, in bytes. */
  readonly bytes: number
  readonly tornBytes: number
  /** Length of all complete checkpoints, in bytes. */
  readonly checkpointBytes: number
  readonly sealed: { readonly size: number; readonly checkpoint: string } | undefined
}

/**
 * Reads a log from its files. An incomplete line at the end is left out, because it was never
 * acknowledged. Throws if the lines do not match the last checkpoint or if lines are missing, because
 * writing more entries would hide the damage.
 */
export async function restoreLog(dir: string, origin: string): Promise<RestoredLog> {
  const last = await lastCheckpoint(dir)
  if (last && last.head.origin !== origin) {
    throw new SkeinError(`The log in "${dir}" is "${last.head.origin}", not "${origin}".`, {
      code: 'LOG_ORIGIN_MISMATCH',
      hint: 'Give each log a folder of its own, and open it with the same origin each time.',
    })
  }
  const tree = new CompactRange()
  const sequences = new LogSequences()
  let bytes = 0
  let tornBytes = 0
  for await (const lines of splitLines(readChunks(join(dir, ENTRIES_FILE)))) {
    for (const { leaf, offset, isWhole } of lines) {
      if (!isWhole) {
        tornBytes = leaf.length - 1
        continue
      }
      const entry = readEntry(leaf)
      if (entry === undefined) throw damaged(dir, `entry ${tree.size} is not a journal entry`)
      sequences.advance(entry.request_id, entry.seq, tree.size, offset)
      tree.append(sha256(leaf))
      bytes = offset + leaf.length
      if (tree.size === last?.head.size && !isEqualHash(tree.root(), last.head.root))
        throw damaged(dir, `its first ${tree.size} entries are not those of its last checkpoint`)
    }
  }
  if (last && tree.size < last.head.size)
    throw damaged(
      dir,
      `it has ${tree.size} entries where its last checkpoint has ${last.head.size}`,
    )
  const sealed = last && { size: last.head.size, checkpoint: last.checkpoint }
  return { tree, sequences, bytes, tornBytes, checkpointBytes: last?.end ?? 0, sealed }
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function readEntry(leaf: Uint8Array): { request_id: string; seq: number } | undefined {
  try {
    const { request_id, metadata } = JSON.parse(decoder.decode(leaf.subarray(1))) as Envelope
    const seq = metadata?.['uaicp:seq']
    return typeof request_id === 'string' && typeof seq === 'number'
      ? { request_id, seq }
      : undefined
  } catch {
    return undefined // Not UTF-8 or not JSON.
  }
}

/** Reads all complete checkpoints, oldest first. */
export async function* readCheckpoints(dir: string): AsyncGenerator<string, void> {
  for await (const { checkpoint } of storedCheckpoints(dir)) yield checkpoint
}

interface StoredCheckpoint {
  readonly checkpoint: string
  /** Byte offset in the file at which the next checkpoint begins. */
  readonly end: number
}

async function* storedCheckpoints(dir: string): AsyncGenerator<StoredCheckpoint, void> {
  for await (const lines of splitLines(readChunks(join(dir, CHECKPOINTS_FILE)))) {
    for (const { leaf, offset, isWhole } of lines) {
      const line = new TextDecoder().decode(leaf.subarray(1))
      if (isWhole) yield { checkpoint: parseLine(line), end: offset + leaf.length }
    }
  }
}

/**
 * Returns the text of a checkpoint. A damaged line is returned unchanged; parsing it as a checkpoint then
 * fails.
 */
function parseLine(line: string): string {
  try {
    return String(JSON.parse(line))
  } catch {
    return line
  }
}

async function lastCheckpoint(
  dir: string,
): Promise<(StoredCheckpoint & { readonly head: ParsedCheckpoint }) | undefined> {
  let last: StoredCheckpoint | undefined
  for await (const stored of storedCheckpoints(dir)) last = stored
  if (last === undefined) return undefined
  const head = parseCheckpoint(last.checkpoint)
  if (head === undefined) throw damaged(dir, 'its last checkpoint is not readable')
  return { ...last, head }
}

function damaged(dir: string, what: string): SkeinError {
  return new SkeinError(`The log in "${dir}" was changed or damaged: ${what}.`, {
    code: 'LOG_DAMAGED',
    hint: 'Run "skein-audit verify" on the folder, do not change it, and begin a new log elsewhere.',
  })
}

/**
 * Verifies the log in a folder against the checkpoints in that folder and, if given, against a trusted
 * checkpoint that was kept elsewhere.
 */
export function verifyLogFolder(
  dir: string,
  options: Omit<VerifyLogOptions, 'checkpoints'>,
): Promise<LogVerdict> {
  const entries = readChunks(join(dir, ENTRIES_FILE))
  return verifyLog(entries, { ...options, checkpoints: readCheckpoints(dir) })
}

/** The names of the files in a log's folder. */
export const ENTRIES_FILE = 'entries.ndjson'
export const CHECKPOINTS_FILE = 'checkpoints.ndjson'

/**
 * Reads a file from `start` in pieces; yields nothing if the file does not exist. Each piece is
 * overwritten by the next one.
 */
export async function* readChunks(path: string, start = 0): AsyncGenerator<Uint8Array, void> {
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (file === undefined) return
  try {
    const buffer = new Uint8Array(1 << 18)
    for (let at = start; ;) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, at)
      if (bytesRead === 0) return
      at += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
  } finally {
    await file.close()
  }
}
