import { rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { StoreRow } from '@skein/runtime'
import { readBackup, RowDigest, writeBackup } from '../backup/backup-file.ts'
import { loadConfig } from '../config/config.ts'
import { shownAddress, type StoreAddress, storeAddress } from '../config/refusals.ts'
import { openPostgres } from '../connect/stores.ts'
import { storeFile } from '../config/project-folder.ts'
import {
  type Command,
  CommandError,
  defineCommand,
  ExitCode,
  JSON_OPTION,
  type TextOption,
  usageError,
} from '../terminal/command.ts'
import type { Output } from '../terminal/output.ts'
import { type OnProgress, showProgress } from '../terminal/progress.ts'

/** `skein store verify` */
export const storeVerify: Command = defineCommand({
  operands: [
    {
      name: 'folder',
      description: 'Folder that holds skein.db. Default: .skein in this folder.',
      isOptional: true,
    },
  ],
  options: JSON_OPTION,
  examples: ['skein store verify', 'skein store verify ./backup --json'],
  async run({ values, operands: [folder], output }) {
    const path = folder === undefined ? storeFile() : join(resolve(folder), 'skein.db')
    const { verifyStore } = await import('@skein/runtime')
    const report = verifyStore(path, { onRead: showProgress(output, 'checking') })
    const { problems, threads, events, auditLines, blobs } = report
    if (values.json) output.json({ path, ...report })
    else {
      for (const problem of problems) output.line(problem)
      const amounts = `${threads} threads, ${events} events, ${auditLines} audit lines, ${blobs} contents`
      const verdict = problems.length === 0 ? 'no problem' : `${problems.length} problems`
      output.line(`${path}: ${amounts}; ${verdict}.`)
    }
    return problems.length === 0 ? ExitCode.Done : ExitCode.Failed
  },
})

const STORE_OPTION: { readonly store: TextOption } = {
  store: {
    type: 'string',
    value: 'address',
    description:
      'sqlite:<file> or postgres://…; its password may be in PGPASSWORD. Default: that of the configuration.',
  },
}

/** `skein backup` */
export const backupCommand: Command = defineCommand({
  operands: [
    { name: 'file', description: 'File to create; with the ending .gz it is compressed.' },
  ],
  options: { ...STORE_OPTION, ...JSON_OPTION },
  examples: [
    'skein backup skein-monday.jsonl.gz',
    'skein backup all.jsonl --store postgres://db/skein',
  ],
  async run({ values, operands: [file = ''], output }) {
    const from = await addressOf(values.store)
    const path = resolve(file)
    const about = { from: from.type, at: new Date().toISOString() }
    const digest = await untilInterrupted((signal) =>
      withRows(from, showProgress(output, 'reading the store'), (rows) =>
        writeBackup(path, rows, about, {
          signal,
          onCheck: showProgress(output, 'checking the file'),
        }),
      ),
    )
    output.say('Keys are not part of a backup: keep those of secrets and governance elsewhere.')
    return report(digest, { from: shownAddress(from), to: path }, values, output)
  },
})

/** Does work that a signal to this process aborts. The work removes what it has begun to write. */
async function untilInterrupted<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const ending = new AbortController()
  const stop = (): void => ending.abort()
  process.on('SIGINT', stop).on('SIGTERM', stop)
  try {
    return await work(ending.signal)
  } catch (cause) {
    if (!ending.signal.aborted || cause instanceof CommandError) throw cause
    throw new CommandError('Interrupted. Nothing was written.', {
      code: 'INTERRUPTED',
      exitCode: ExitCode.Interrupted,
      cause,
    })
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop)
  }
}

/** `skein restore` */
export const restoreCommand: Command = defineCommand({
  operands: [{ name: 'file', description: 'A file of `skein backup`.' }],
  options: { ...STORE_OPTION, ...JSON_OPTION },
  examples: [
    'skein restore skein-monday.jsonl.gz --store sqlite:./restored/skein.db',
    'skein restore all.jsonl --store postgres://db/skein',
  ],
  async run({ values, operands: [file = ''], output }) {
    const to = await addressOf(values.store)
    const path = resolve(file)
    const rows = readBackup(path, { onRead: showProgress(output, 'restoring') })
    const digest = await untilInterrupted((signal) => fill(to, rows, { output, signal }))
    return report(digest, { from: path, to: shownAddress(to) }, values, output)
  },
})

/** `skein store copy` */
export const copyCommand: Command = defineCommand({
  operands: [
    { name: 'from', description: 'sqlite:<file> or postgres://…' },
    { name: 'to', description: 'sqlite:<file> or postgres://…; it must contain no threads.' },
  ],
  options: JSON_OPTION,
  examples: [
    'skein store copy sqlite:.skein/skein.db postgres://db/skein',
    'skein store copy postgres://db/skein sqlite:./copy/skein.db --json',
  ],
  async run({ values, operands: [source = '', target = ''], output }) {
    const [from, to] = [namedAddress(source), namedAddress(target)]
    const digest = await untilInterrupted((signal) =>
      withRows(from, showProgress(output, 'copying'), (rows) => fill(to, rows, { output, signal })),
    )
    output.say('What is written to the old store from now on is not in the copy.')
    return report(digest, { from: shownAddress(from), to: shownAddress(to) }, values, output)
  },
})

/** Returns the address of the named store or, without a name, of the store in the configuration or in this folder. */
async function addressOf(named: string | undefined): Promise<StoreAddress> {
  if (named !== undefined) return namedAddress(named)
  const { config } = await loadConfig(undefined)
  return config.store === undefined
    ? { type: 'sqlite', path: storeFile() }
    : namedAddress(config.store)
}

function namedAddress(text: string): StoreAddress {
  const address = storeAddress(text)
  if (address) return address
  const placeholder = /:\/\//.test(text) ? `${text.split('://')[0]}://…` : text
  throw usageError(
    `"${placeholder}" is not a store.`,
    'Write sqlite:<file> or postgres://host/database.',
  )
}

type Rows = AsyncIterable<StoreRow> | Iterable<StoreRow>

/** Passes everything in a store, as it was at one moment, to `work`. Others may use the store meanwhile. */
async function withRows<T>(
  from: StoreAddress,
  onRead: OnProgress,
  work: (rows: Rows) => Promise<T>,
): Promise<T> {
  const { readSqliteStore } = await import('@skein/runtime')
  const store =
    from.type === 'sqlite'
      ? readSqliteStore(from.path, { onRead })
      : await openPostgres(from.connectionString)
  try {
    // A file says itself how much of it was read.
    return await work(from.type === 'sqlite' ? store.rows() : counted(store.rows(), onRead))
  } finally {
    await store.close()
  }
}

/** Reports the bytes of rows. How many there will be is not known. */
async function* counted(rows: Rows, onRead: OnProgress): AsyncGenerator<StoreRow, void, undefined> {
  let bytes = 0
  for await (const row of rows) {
    if (row.type === 'blob') bytes += row.bytes.length
    else if (row.type === 'event') bytes += row.json.length
    else if (row.type === 'audit') bytes += row.line.length
    onRead(bytes)
    yield row
  }
}

/**
 * Writes rows to an empty store, reads the store again, and compares the two by their digests. When the signal aborts,
 * nothing of a new file is left.
 */
async function fill(
  to: StoreAddress,
  rows: Rows,
  { output, signal }: { readonly output: Output; readonly signal: AbortSignal },
): Promise<RowDigest> {
  const digest = new RowDigest()
  const { completeHead } = await import('@skein/runtime')
  // The digest is that of the completed rows, because a store that is read has every field.
  const completeRows = async function* (): AsyncGenerator<StoreRow, void, undefined> {
    for await (const row of interruptible(rows, signal))
      yield row.type === 'thread' ? { ...row, head: completeHead(row.head) } : row
  }
  if (to.type === 'sqlite') {
    const { loadSqliteStore } = await import('@skein/runtime')
    await loadSqliteStore(to.path, digest.of(completeRows()))
  } else {
    const store = await openPostgres(to.connectionString)
    try {
      await store.load(digest.of(completeRows()))
    } finally {
      await store.close()
    }
  }
  const copy = new RowDigest()
  const reading = withRows(to, showProgress(output, 'checking the copy'), async (found) => {
    for await (const row of interruptible(found, signal)) copy.add(row)
  })
  await reading.catch((cause: unknown) => {
    if (!signal.aborted) throw cause
    if (to.type === 'postgres') throw unverified(cause)
    removeFile(to.path)
    throw cause
  })
  const differences = copy.differences(digest)
  if (differences.length === 0) return digest
  if (to.type === 'sqlite') removeFile(to.path)
  throw new CommandError(`The copy differs from its source: it has ${differences.join(', ')}.`, {
    code: 'COPY_DIFFERS',
    hint: 'Do not use the copy. Check the disk, and whether someone else writes to that store.',
  })
}

/** Removes a store that this command has created. */
function removeFile(path: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`, { force: true })
}

function unverified(cause: unknown): CommandError {
  return new CommandError(
    'Interrupted while the copy was read again. It was written, not verified.',
    {
      code: 'INTERRUPTED',
      exitCode: ExitCode.Interrupted,
      hint: 'Drop its schema and copy again, or compare the counts of the two stores.',
      cause,
    },
  )
}

/** After how many rows a signal to this process can arrive: rows of a file come without a pause. */
const PAUSE_AFTER = 500

async function* interruptible(
  rows: Rows,
  signal: AbortSignal,
): AsyncGenerator<StoreRow, void, undefined> {
  let number = 0
  for await (const row of rows) {
    if (++number % PAUSE_AFTER === 0) await setImmediate()
    signal.throwIfAborted()
    yield row
  }
}

const NAMES: Readonly<Record<string, string>> = {
  thread: 'threads',
  event: 'events',
  audit: 'audit lines',
  blob: 'contents',
  blob_name: 'uses of contents',
  spent: 'spent tokens',
  counter: 'counters',
  user_value: 'values of users',
  setting: 'settings',
}

function report(
  { counts, sums }: RowDigest,
  names: { readonly from: string; readonly to: string },
  { json }: { readonly json?: boolean },
  output: Output,
): ExitCode {
  const parts = Object.entries(NAMES).map(([type, name]) => `${counts[type] ?? 0} ${name}`)
  if (json) output.json({ ...names, counts, sums })
  else output.line(`${names.from} → ${names.to}: ${parts.join(', ')}; all verified.`)
  return ExitCode.Done
}
