import { isObject } from '@skein/base'
import { type Converted, type Loss, ThreadError } from '../issue.ts'
import { type JsonLimits, parseJson } from '../json/json-parse.ts'
import { keepJsonText } from '../json/json-stringify.ts'
import { migrateActions } from './migrate-actions.ts'
import { UnsupportedVersionError } from './thread-text.ts'
import type { Thread } from './thread.ts'

/** A migrated thread of version 2.0.0, and the values that had to be inferred. */
export interface Migration extends Converted<Thread> {
  readonly from: string
  /**
   * The values that are not in the source; each `pointer` is the place of one value in the migrated thread.
   */
  readonly inferred: readonly Loss[]
}

/** Collects lost and inferred values during a migration. */
export interface MigrationReport {
  readonly lost: Loss[]
  readonly inferred: Loss[]
}

/**
 * Converts a thread of another draft to 2.0.0: 1.0.0 (a flat list of actions), 0.0.3 or 0.0.4 (which, despite
 * their numbers, came after 2.0.0 and extend it). Versions are looked up in a table, never compared. Threads
 * of 2.x are returned unchanged.
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

type Fields = { readonly [key: string]: unknown }

/**
 * The event names of 2.0.0 for the events that the drafts 0.0.3 and 0.0.4 define. Other `data-…` events keep
 * their names.
 */
const EVENT_NAMES: ReadonlyMap<unknown, string> = new Map([
  ['data-tp-agent_handoff', 'agent.handoff'],
  ['data-tp-thread_spawn', 'thread.spawn'],
  ['data-tp-thread_merge', 'thread.merge'],
  ['data-tp-thread_end', 'thread.end'],
  ['data-tp-error', 'error'],
])

/** Converts turns of 0.0.3 and 0.0.4: they are turns of 2.0.0 in which fields may be missing. */
function migrateTurns(turns: unknown, report: MigrationReport): unknown[] {
  if (!Array.isArray(turns)) return []
  const migration = new TurnMigration(report)
  return turns.map((turn: unknown, index) => migration.turn(turn, `/turns/${index}`))
}

class TurnMigration {
  readonly #report: MigrationReport
  /**
   * Ids that were generated for calls without an id, by tool name, oldest first. Each return without an id
   * takes the oldest of them.
   */
  readonly #madeUp = new Map<unknown, string[]>()
  #count = 0

  constructor(report: MigrationReport) {
    this.#report = report
  }

  turn(turn: unknown, at: string): unknown {
    if (!isObject(turn)) return turn
    if (turn['turn_type'] === 'user') return this.#withParts(turn, at)
    if (turn['turn_type'] !== 'agent') return turn
    const messages = Array.isArray(turn['messages']) ? (turn['messages'] as readonly unknown[]) : []
    return this.#fill(
      turn,
      at,
      {
        completed_at: () => endOf(turn),
        messages: () => [],
      },
      messages.length > 0
        ? {
            messages: messages.map((message, index) =>
              this.#message(message, turn, `${at}/messages/${index}`),
            ),
          }
        : {},
    )
  }

  #message(message: unknown, turn: Fields, at: string): unknown {
    if (!isObject(message)) return message
    if (message['message_type'] === 'system') {
      const name = EVENT_NAMES.get(message['event_type'])
      return name === undefined ? message : keepJsonText(message, { ...message, event_type: name })
    }
    return this.#withParts(this.#fill(message, at, { agent_id: () => turn['agent_id'] }), at)
  }

  #withParts(owner: Fields, at: string): Fields {
    const parts = owner['parts']
    if (!Array.isArray(parts)) return owner
    const newParts = parts.map((part: unknown, index) => this.#part(part, `${at}/parts/${index}`))
    return newParts.every((part, index) => part === parts[index])
      ? owner
      : keepJsonText(owner, { ...owner, parts: newParts })
  }

  #part(part: unknown, at: string): unknown {
    if (!isObject(part)) return part
    if (part['part_kind'] === 'tool-call') {
      return this.#fill(part, at, {
        tool_call_id: () => this.#makeUp(part['tool_name']),
        args: () => null,
      })
    }
    if (part['part_kind'] !== 'tool-return') return part
    return this.#fill(part, at, {
      tool_call_id: () =>
        this.#madeUp.get(part['tool_name'])?.shift() ?? this.#makeUp(part['tool_name']),
      status: () => 'success',
      // 2.0.0 requires `content`; the drafts leave it out when there is a `content_ref`.
      content: () => null,
    })
  }

  #makeUp(toolName: unknown): string {
    const id = `migrated-${++this.#count}`
    this.#madeUp.set(toolName, [...(this.#madeUp.get(toolName) ?? []), id])
    return id
  }

  /**
   * Returns `source` with the missing fields added and the fields in `changed` replaced. Each added field is
   * reported as inferred.
   */
  #fill(
    source: Fields,
    at: string,
    missing: { readonly [key: string]: () => unknown },
    changed: Fields = {},
  ): Fields {
    const newFields: { [key: string]: unknown } = {}
    for (const [key, make] of Object.entries(missing)) {
      if (source[key] !== undefined) continue
      const value = make()
      if (value === undefined) continue
      newFields[key] = value
      this.#report.inferred.push({
        pointer: `${at}/${key}`,
        reason: 'the draft allows it to be absent',
      })
    }
    if (Object.keys(newFields).length === 0 && Object.keys(changed).length === 0) return source
    return keepJsonText(source, { ...source, ...newFields, ...changed })
  }
}

/**
 * Returns the end of a turn without `completed_at`: the time of its interruption, else of its last message,
 * else its start.
 */
function endOf(turn: Fields): unknown {
  const interruption = turn['interruption']
  if (isObject(interruption) && typeof interruption['interrupted_at'] === 'string')
    return interruption['interrupted_at']
  const last: unknown = Array.isArray(turn['messages']) ? turn['messages'].at(-1) : undefined
  return isObject(last) && typeof last['timestamp'] === 'string'
    ? last['timestamp']
    : turn['started_at']
}
