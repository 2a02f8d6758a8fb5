import { rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { StoreRow } from '@skein/runtime'
import type { Client } from '@skein/runtime/client'
import { RowDigest, readBackup, writeBackup } from '../backup/backup-file.ts'
import { loadConfig } from '../config/config.ts'
import { type StoreAddress, shownAddress, storeAddress } from '../config/refusals.ts'
import { openPostgres, withConnection } from '../connect/connect.ts'
import { storeFile } from '../connect/embed.ts'
import {
  type Command,
  CommandError,
  ExitCode,
  JSON_OPTION,
  SERVER_OPTIONS,
  type TextOption,
  defineCommand,
  usageError,
} from '../terminal/command.ts'
import { type Output, lineText, textTable } from '../terminal/output.ts'

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
    const report = verifyStore(path)
    const { problems, threads, events, auditLines, blobs } = report
    if (values.json) output.json({ path, ...report })
    else {
      for (const problem of problems) output.line(problem)
      const read = `${threads} threads, ${events} events, ${auditLines} audit lines, ${blobs} contents`
      const found = problems.length === 0 ? 'no problem' : `${problems.length} problems`
      output.line(`${path}: ${read}; ${found}.`)
    }
    return problems.length === 0 ? ExitCode.Done : ExitCode.Failed
  },
})

/** `skein limits` */
export const limits: Command = defineCommand({
  operands: [],
  options: { ...JSON_OPTION, ...SERVER_OPTIONS },
  examples: ['skein limits', "skein limits --json | jq '.spending[].refused'"],
  run: ({ values, output }) =>
    withConnection(values, output, async ({ client }) => {
      const report = await client.limits()
      const { spending, retention } = report
      if (values.json) output.json(report)
      else if (spending.length + retention.length === 0)
        output.say('Nothing was spent under a limit, and nothing was removed.')
      else {
        for (const line of textTable(spending.map(spendingRow))) output.line(line)
        for (const { tenant, erased, removed, kept, failed } of retention)
          output.line(
            `tenant ${lineText(tenant)}: ${erased} threads erased, ${removed} removed, ${kept} kept because they worked, ${failed} failed`,
          )
      }
      return ExitCode.Done
    }),
})

type Account = Awaited<ReturnType<Client['limits']>>['spending'][number]

function spendingRow({ tenant, user, until, spent, reserved, max, ...counts }: Account): string[] {
  const { refused, delayed } = counts
  const of = (limit: number | undefined): string => (limit === undefined ? '' : ` of ${limit}`)
  return [
    lineText(user === undefined ? `tenant ${tenant}` : `user ${user} of ${tenant}`),
    `until ${until}`,
    `$${Number((spent.costUsd + reserved.costUsd).toFixed(6))}${of(max.costUsd)}`,
    `${spent.tokens + reserved.tokens}${of(max.tokens)} tokens`,
    `${spent.inferences + reserved.inferences}${of(max.inferences)} requests`,
    `${refused} refused`,
    `${delayed} delayed`,
  ]
}

const STORE_OPTION: { readonly store: TextOption } = {
  store: {
    type: 'string',
    value: 'address',
    description:
      'sqlite:<file> or postgres://…; its password may stand in PGPASSWORD. Default: that of the configuration.',
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
    const written = await withRows(from, (rows) =>
      writeBackup(path, rows, { from: from.type, at: new Date().toISOString() }),
    )
    // The file is read again, to make sure that what is on the disk is what was written.
    for await (const _ of readBackup(path)) void _
    output.say('Keys are not part of a backup: keep those of secrets and governance elsewhere.')
    return report(written, { from: shownAddress(from), to: path }, values, output)
  },
})

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
    const digest = await fill(to, readBackup(path))
    return report(digest, { from: path, to: shownAddress(to) }, values, output)
  },
})

/** `skein store copy` */
export const copyCommand: Command = defineCommand({
  operands: [
    { name: 'from', description: 'sqlite:<file> or postgres://…' },
    { name: 'to', description: 'sqlite:<file> or postgres://…; it must not have threads.' },
  ],
  options: JSON_OPTION,
  examples: [
    'skein store copy sqlite:.skein/skein.db postgres://db/skein',
    'skein store copy postgres://db/skein sqlite:./copy/skein.db --json',
  ],
  async run({ values, operands: [source = '', target = ''], output }) {
    const [from, to] = [namedAddress(source), namedAddress(target)]
    const digest = await withRows(from, (rows) => fill(to, rows))
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
  const shown = /:\/\//.test(text) ? `${text.split('://')[0]}://…` : text
  throw usageError(`"${shown}" is not a store.`, 'Write sqlite:<file> or postgres://host/database.')
}

type Rows = AsyncIterable<StoreRow> | Iterable<StoreRow>

/** Passes everything in a store, as it was at one moment, to `work`. Others may use the store meanwhile. */
async function withRows<T>(from: StoreAddress, work: (rows: Rows) => Promise<T>): Promise<T> {
  const { readSqliteStore } = await import('@skein/runtime')
  const store =
    from.type === 'sqlite' ? readSqliteStore(from.path) : await openPostgres(from.connectionString)
  try {
    return await work(store.rows())
  } finally {
    await store.close()
  }
}

/** Writes rows to an empty store, reads the store again, and compares the two by their digests. */
async function fill(to: StoreAddress, rows: Rows): Promise<RowDigest> {
  const digest = new RowDigest()
  if (to.type === 'sqlite') {
    const { loadSqliteStore } = await import('@skein/runtime')
    await loadSqliteStore(to.path, digest.of(rows))
  } else {
    const store = await openPostgres(to.connectionString)
    try {
      await store.load(digest.of(rows))
    } finally {
      await store.close()
    }
  }
  const stored = new RowDigest()
  await withRows(to, async (found) => {
    for await (const row of found) stored.add(row)
  })
  const differences = stored.differences(digest)
  if (differences.length === 0) return digest
  if (to.type === 'sqlite') rmSync(to.path, { force: true }) // this command has created it
  throw new CommandError(`The copy differs from its source: it has ${differences.join(', ')}.`, {
    code: 'COPY_DIFFERS',
    hint: 'Do not use the copy. Check the disk, and whether somebody else writes to that store.',
  })
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
