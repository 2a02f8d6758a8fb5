import { isObject, sha256Hex } from '@skein/base'
import { keepJsonText } from '../json/json-stringify.ts'
import type { MigrationReport } from './migrate.ts'
import { sumUsage } from './stats.ts'
import type { Usage } from './thread.ts'

type Fields = { readonly [key: string]: unknown }
type Draft = { [key: string]: unknown }

/** The event names of 2.0.0 for system actions of 1.0.0. Other actions keep their name. */
const EVENT_NAMES: ReadonlyMap<string, string> = new Map([
  ['system.tool_grant', 'tool.grant'],
  ['system.tool_revoke', 'tool.revoke'],
  ['system.agent_handoff', 'agent.handoff'],
  ['system.state_update', 'state.update'],
  ['system.ui_update', 'ui.update'],
  ['system.context_switch', 'context.switch'],
])

/**
 * Converts the flat list of actions of 1.0.0 to turns. Runs and model responses are not marked in 1.0.0, so
 * they are inferred: a run lasts as long as the same agent acts; a tool return or a second answer ends a
 * response.
 */
export function migrateActions(
  actions: unknown,
  document: Fields,
  report: MigrationReport,
): readonly unknown[] {
  if (!Array.isArray(actions)) return []
  const grouping = new ActionGrouping(document, report)
  for (const [index, action] of inSequence(actions as readonly unknown[], report).entries()) {
    if (isObject(action)) grouping.add(action, `/actions/${index}`)
    else report.lost.push({ pointer: `/actions/${index}`, reason: 'not an action' })
  }
  return grouping.finish()
}

/** Sorts actions by their sequence numbers. In 2.0.0, the position in the list replaces these numbers. */
function inSequence(actions: readonly unknown[], report: MigrationReport): readonly unknown[] {
  const numbers = actions.map((action) => (isObject(action) ? action['sequence'] : undefined))
  if (!numbers.every((number) => typeof number === 'number')) return actions
  if (numbers.every((number, index) => index === 0 || numbers[index - 1]! <= number)) return actions
  const reason = 'actions were put in the order of their sequence numbers'
  report.inferred.push({ pointer: '/turns', reason })
  return actions.toSorted(
    (a, b) => Number((a as Fields)['sequence']) - Number((b as Fields)['sequence']),
  )
}

class ActionGrouping {
  readonly #document: Fields
  readonly #report: MigrationReport
  readonly #turns: Draft[] = []
  readonly #callers = new Map<unknown, unknown>()
  #run: Draft | undefined
  /** Events that happened between runs. They are put at the start of the next run. */
  #waiting: Draft[] = []
  /** How many of them came before the last turn. The next run starts after that turn: turns do not overlap. */
  #early = 0
  /** Reports a value of the next turn that had to be inferred, because 1.0.0 does not contain it. */
  readonly #infer = (reason: string): void => {
    this.#report.inferred.push({ pointer: `/turns/${this.#turns.length}`, reason })
  }

  constructor(document: Fields, report: MigrationReport) {
    this.#document = document
    this.#report = report
  }

  add(action: Fields, at: string): void {
    switch (action['action_type']) {
      case 'user_message':
        return this.#user(action)
      case 'assistant_message':
        return this.#assistant(action)
      case 'thinking':
        return this.#respond(action, [
          part(action, 'thinking', ['content', 'signature', 'provider_name', 'thinking_id']),
        ])
      case 'tool_call':
        this.#callers.set(action['tool_call_id'], action['agent_id'])
        return this.#respond(action, [
          part(action, 'tool-call', ['tool_name', 'tool_call_id', 'args']),
        ])
      case 'tool_return':
        return this.#toolReturn(action)
      default:
        if (typeof action['action_type'] === 'string') this.#event(action, action['action_type'])
        else this.#report.lost.push({ pointer: at, reason: 'not an action' })
    }
  }

  finish(): readonly unknown[] {
    this.#closeRun()
    if (this.#waiting.length > 0) this.#eventsAfterAll()
    return this.#turns
  }

  #user(action: Fields): void {
    this.#closeRun()
    this.#early = this.#waiting.length
    const { timestamp, attachments } = action
    const content = migrateContent(action['content'], attachments, this.#infer)
    this.#turns.push({
      turn_type: 'user',
      submitted_at: timestamp,
      parts: [{ part_kind: 'user-prompt', content }],
      ...without(action, 'action_type', 'sequence', 'timestamp', 'content', 'attachments'),
    })
  }

  #assistant(action: Fields): void {
    const content = migrateContent(action['content'], undefined, this.#infer)
    const items: readonly unknown[] = Array.isArray(content) ? content : [content]
    // The time, and fields that draft 1.0.0 does not define, are copied to each part that is made from the
    // content.
    const rest = without(action, ...OWN_FIELDS, 'content', 'finish_reason')
    const parts = items.map((item) => {
      return { part_kind: typeof item === 'string' ? 'text' : 'file', content: item, ...rest }
    })
    const last = this.#lastMessage()
    // A response has one answer, so a second answer begins another response.
    const answered = last?.['message_type'] === 'response' && last['answered'] === true
    this.#respond(action, parts, answered)
    const message = this.#lastMessage()!
    message['answered'] = true
    if (action['finish_reason'] !== undefined) message['finish_reason'] = action['finish_reason']
  }

  #respond(action: Fields, parts: readonly unknown[], fresh = false): void {
    this.#openRun(action['agent_id'], action['timestamp'])
    const message = this.#message('response', action, fresh)
    ;(message['parts'] as unknown[]).push(...parts)
    const usage = sumUsage([message['usage'] as Usage, action['usage'] as Usage])
    if (usage) message['usage'] = usage
  }

  #toolReturn(action: Fields): void {
    const agentId =
      this.#callers.get(action['tool_call_id']) ?? this.#run?.['agent_id'] ?? this.#anyAgent()
    this.#openRun(agentId, action['timestamp'])
    const message = this.#message('request', { ...action, agent_id: agentId }, false)
    const resultPart = part(action, 'tool-return', [
      'tool_name',
      'tool_call_id',
      'status',
      'content',
    ])
    if (action['usage'] !== undefined) resultPart['usage'] = action['usage']
    // The message has the agent of the call.
    if ((action['agent_id'] ?? agentId) !== agentId) resultPart['agent_id'] = action['agent_id']
    ;(message['parts'] as unknown[]).push(resultPart)
  }

  #event(action: Fields, type: string): void {
    const event: Draft = {
      message_type: 'system',
      timestamp: action['timestamp'],
      event_type: EVENT_NAMES.get(type) ?? type,
      event_data: action['data'] ?? null,
      ...without(action, 'action_type', 'sequence', 'timestamp', 'data'),
    }
    if (this.#run) (this.#run['messages'] as unknown[]).push(event)
    else this.#waiting.push(event)
  }

  #openRun(agentId: unknown, time: unknown): void {
    if (this.#run?.['agent_id'] === agentId && this.#run) return
    this.#closeRun()
    this.#run = {
      turn_type: 'agent',
      agent_id: agentId,
      started_at: this.#waiting[this.#early]?.['timestamp'] ?? time,
      completed_at: time,
      messages: this.#waiting,
    }
    this.#waiting = []
    this.#early = 0
    this.#infer('1.0.0 marks no runs: grouped by agent')
  }

  #closeRun(): void {
    if (this.#run === undefined) return
    const messages = this.#run['messages'] as Draft[]
    this.#run['completed_at'] = messages.at(-1)?.['timestamp'] ?? this.#run['started_at']
    for (const message of messages) delete message['answered']
    const usage = sumUsage(messages.map((message) => message['usage'] as Usage | undefined))
    if (usage) this.#run['total_usage'] = usage
    this.#turns.push(this.#run)
    this.#run = undefined
  }

  /**
   * Returns the message that the action belongs to: the last message if it has the right type and `fresh` is
   * false, else a new message.
   */
  #message(type: 'request' | 'response', action: Fields, fresh: boolean): Draft {
    const last = this.#lastMessage()
    if (!fresh && last?.['message_type'] === type) return last
    const message: Draft = {
      message_type: type,
      timestamp: action['timestamp'],
      agent_id: action['agent_id'],
      parts: [],
    }
    ;(this.#run!['messages'] as unknown[]).push(message)
    return message
  }

  #lastMessage(): Draft | undefined {
    return (this.#run?.['messages'] as Draft[] | undefined)?.at(-1)
  }

  /**
   * Puts events after the last run into an additional turn, whose agent is that of the last run or, without
   * any run, the first registered agent.
   */
  #eventsAfterAll(): void {
    const last = this.#turns.findLast((turn) => turn['turn_type'] === 'agent')
    const agentId = last?.['agent_id'] ?? this.#anyAgent()
    if (agentId === undefined) {
      const reason = 'events of a thread without agents have no turn'
      this.#report.lost.push({ pointer: '/actions', reason })
      return
    }
    this.#openRun(agentId, this.#waiting[0]!['timestamp'])
    this.#closeRun()
  }

  #anyAgent(): unknown {
    return isObject(this.#document['agents']) ? Object.keys(this.#document['agents'])[0] : undefined
  }
}

/** Converts an action to a part: first the fields in `names`, then all others, also unknown ones. */
function part(action: Fields, kind: string, names: readonly string[]): Draft {
  const rest = without(action, ...OWN_FIELDS)
  const made: Draft = { part_kind: kind }
  for (const name of names) if (rest[name] !== undefined) made[name] = rest[name]
  return keepJsonText(action, { ...made, ...rest, part_kind: kind })
}

/** Fields of an action that do not become fields of a part. */
const OWN_FIELDS = ['action_type', 'sequence', 'agent_id', 'usage']

function without(source: Fields, ...names: readonly string[]): Draft {
  return Object.fromEntries(Object.entries(source).filter(([key]) => !names.includes(key)))
}

/** Converts message content of 1.0.0, with attachments, to content of 2.0.0. */
function migrateContent(
  content: unknown,
  attachments: unknown,
  infer: (reason: string) => void,
): unknown {
  const extra: readonly unknown[] = Array.isArray(attachments) ? attachments : []
  const isList = Array.isArray(content)
  const text = typeof content === 'string' ? content : undefined
  if (!isList && extra.length === 0) return text ?? ''
  const own: readonly unknown[] = isList ? content : text === undefined ? [] : [text]
  return [...own, ...extra].map((item) => migrateMedia(item, infer))
}

function migrateMedia(item: unknown, infer: (reason: string) => void): unknown {
  if (!isObject(item)) return item
  const { type, text } = item
  if (type === 'text' && typeof text === 'string') return text
  const mediaType = typeof item['media_type'] === 'string' ? item['media_type'] : undefined
  const kind = typeof type === 'string' ? type : (mediaType?.split('/')[0] ?? 'file')
  const url = item[`${kind}_url`] ?? item['url']
  const data = item[`${kind}_base64`] ?? item['data']
  const file = Object.entries(item).filter(([key]) => key === 'name' || key === 'size_bytes')
  const rest = without(item, ...MEDIA_FIELDS, `${kind}_url`, `${kind}_base64`)
  // An attachment with a `vendor_metadata` of its own keeps it, and its name and size next to it.
  if ('vendor_metadata' in rest) Object.assign(rest, Object.fromEntries(file))
  else if (file.length > 0) rest['vendor_metadata'] = Object.fromEntries(file)
  if (typeof url === 'string') {
    infer('an identifier was made for a URL')
    const identifier = sha256Hex(url).slice(0, 6)
    const urlPart = { kind: URL_KINDS.get(kind) ?? 'document-url', url, identifier, ...rest }
    return mediaType ? { ...urlPart, media_type: mediaType } : urlPart
  }
  if (typeof data === 'string') {
    infer('an identifier was made for binary content')
    return {
      kind: 'binary',
      data,
      media_type: mediaType ?? 'application/octet-stream',
      identifier: sha256Hex(data).slice(0, 6),
      ...rest,
    }
  }
  // Content of other kinds is kept unchanged under the kind `v1:…`, because 1.0.0 does not define its fields.
  return { ...item, kind: `v1:${kind}` }
}

const MEDIA_FIELDS = ['type', 'kind', 'media_type', 'name', 'size_bytes', 'url', 'data']
const URL_KINDS: ReadonlyMap<string, string> = new Map([
  ['image', 'image-url'],
  ['audio', 'audio-url'],
  ['video', 'video-url'],
  ['file', 'document-url'],
])
