import { isObject } from './is-object.ts'
import { keepJsonText } from './json-notes.ts'
import type { MigrationReport } from './migrate.ts'

type Fields = { readonly [key: string]: unknown }

/** Normative events of the drafts under the names that 2.0.0 uses. Other `data-…` events keep theirs. */
const EVENT_NAMES: ReadonlyMap<unknown, string> = new Map([
  ['data-tp-agent_handoff', 'agent.handoff'],
  ['data-tp-thread_spawn', 'thread.spawn'],
  ['data-tp-thread_merge', 'thread.merge'],
  ['data-tp-thread_end', 'thread.end'],
  ['data-tp-error', 'error'],
])

/** Turns of 0.0.3 and 0.0.4: those of 2.0.0 with fields that may be missing. */
export function migrateTurns(turns: unknown, report: MigrationReport): unknown[] {
  if (!Array.isArray(turns)) return []
  const migration = new TurnMigration(report)
  return turns.map((turn: unknown, index) => migration.turn(turn, `/turns/${index}`))
}

class TurnMigration {
  readonly #report: MigrationReport
  /** Ids made up for calls without one, by tool name, oldest first. */
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
    const migrated = parts.map((part: unknown, index) => this.#part(part, `${at}/parts/${index}`))
    return migrated.every((part, index) => part === parts[index])
      ? owner
      : keepJsonText(owner, { ...owner, parts: migrated })
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
      // 2.0.0 wants `content`; the drafts leave it out when there is a `content_ref`.
      content: () => null,
    })
  }

  #makeUp(toolName: unknown): string {
    const id = `migrated-${++this.#count}`
    this.#madeUp.set(toolName, [...(this.#madeUp.get(toolName) ?? []), id])
    return id
  }

  /** Adds missing fields and reports each. */
  #fill(
    source: Fields,
    at: string,
    missing: { readonly [key: string]: () => unknown },
    changed: Fields = {},
  ): Fields {
    const added: { [key: string]: unknown } = {}
    for (const [key, make] of Object.entries(missing)) {
      if (source[key] !== undefined) continue
      const value = make()
      if (value === undefined) continue
      added[key] = value
      this.#report.inferred.push({
        pointer: `${at}/${key}`,
        reason: 'the draft allows it to be absent',
      })
    }
    if (Object.keys(added).length === 0 && Object.keys(changed).length === 0) return source
    return keepJsonText(source, { ...source, ...added, ...changed })
  }
}

/** When a turn without `completed_at` ended: when it was interrupted, or at its last message. */
function endOf(turn: Fields): unknown {
  const interruption = turn['interruption']
  if (isObject(interruption) && typeof interruption['interrupted_at'] === 'string')
    return interruption['interrupted_at']
  const last: unknown = Array.isArray(turn['messages']) ? turn['messages'].at(-1) : undefined
  return isObject(last) && typeof last['timestamp'] === 'string'
    ? last['timestamp']
    : turn['started_at']
}
