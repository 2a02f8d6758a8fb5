import { isObject } from './is-object.ts'
import { ThreadError, type Converted, type Loss } from './issue.ts'
import { parseJson, type JsonLimits } from './json-parse.ts'
import { keepJsonText } from './json-notes.ts'
import { migrateActions } from './migrate-actions.ts'
import { migrateTurns } from './migrate-turns.ts'
import { UnsupportedVersionError } from './thread-text.ts'
import type { Thread } from './types.ts'

/** A thread of version 2.0.0, and what had to be assumed to make it one. */
export interface Migration extends Converted<Thread> {
  readonly from: string
  /** Values that the source does not state; `pointer` is the place in the migrated thread. */
  readonly inferred: readonly Loss[]
}

/** Collects the two reports while a converter works. */
export interface MigrationReport {
  readonly lost: Loss[]
  readonly inferred: Loss[]
}

/**
 * Reads a thread of an older draft: 1.0.0 (a flat list of actions), 0.0.3 or 0.0.4 (which, despite their numbers, come
 * after 2.0.0 and extend it). Versions are looked up in a table, never compared. Threads of 2.x are given back as they are.
 */
export function migrateThread(input: unknown, limits: JsonLimits = {}): Migration {
  const document = typeof input === 'string' ? parseJson(input, limits).value : input
  if (!isObject(document) || typeof document['version'] !== 'string') {
    throw new ThreadError('The document has no version, so it cannot be migrated.', {
      code: 'INVALID_THREAD',
      hint: 'A thread is an object with a "version".',
    })
  }
  const from = document['version']
  const report: MigrationReport = { lost: [], inferred: [] }
  const migrate = CONVERTERS.get(/^2\.\d+\.\d+$/.test(from) ? '2.0.0' : from)
  if (migrate === undefined) throw new UnsupportedVersionError(from, document)
  return { value: migrate(document, report), from, ...report }
}

type Converter = (document: { readonly [key: string]: unknown }, report: MigrationReport) => Thread

const CONVERTERS: ReadonlyMap<string, Converter> = new Map([
  ['2.0.0', (document) => document as unknown as Thread],
  ['0.0.3', withTurns],
  ['0.0.4', withTurns],
  ['1.0.0', withActions],
])

function withActions(
  document: { readonly [key: string]: unknown },
  report: MigrationReport,
): Thread {
  const rest = Object.entries(document).filter(([key]) => key !== 'actions')
  return keepJsonText(document, {
    ...Object.fromEntries(rest),
    version: '2.0.0',
    turns: migrateActions(document['actions'], document, report),
  }) as unknown as Thread
}

function withTurns(document: { readonly [key: string]: unknown }, report: MigrationReport): Thread {
  return keepJsonText(document, {
    ...document,
    version: '2.0.0',
    turns: migrateTurns(document['turns'], report),
  }) as unknown as Thread
}
