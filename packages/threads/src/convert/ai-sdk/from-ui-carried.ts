import type {
  AgentTurn,
  SystemMessage,
  Thread,
  ThreadMessage,
  Turn,
} from '../../document/thread.ts'
import type { MessagePart } from '../../document/part.ts'
import { isToolPart } from './assemble-tools.ts'
import {
  carried,
  messageCarrier,
  restore,
  omitKeys,
  type PartCarrier,
  type TurnCarrier,
} from './carrier.ts'
import { approvalEvents, outcomePart } from './from-ui-parts.ts'
import { dataUrlBody } from '../bridge/media.ts'
import type { DataUIPart, OpenToolPart, UIMessage, UIMessagePart } from './types.ts'

/** The turns that are restored from the thread data in the metadata of messages (`carry: 'all'`). */
export interface RebuiltTurns {
  readonly thread: Partial<Thread> | undefined
  covers(message: UIMessage): boolean
  /**
   * Returns the turns in the metadata of the message, then one more turn if the client has added approval
   * answers or tool outputs.
   */
  turnsOf(message: UIMessage, at: string): Turn[]
}

/**
 * Restores the turns from the thread data in the metadata of the messages. All messages are read first,
 * because a tool return is stored in the message of its call, which may belong to another turn.
 */
export function rebuildTurns(messages: readonly UIMessage[]): RebuiltTurns {
  const placed = new Placements()
  for (const message of messages) for (const part of message.parts) placed.read(part)
  const first = messageCarrier(messages[0])
  return {
    thread: first.thread as Partial<Thread> | undefined,
    covers: (message) => entriesOf(message).length > 0,
    turnsOf: (message, at) => {
      const turns = entriesOf(message).map((entry) => rebuildTurn(entry, placed))
      const added = addedByClient(message, turns, at)
      return added ? [...turns, added] : turns
    },
  }
}

function entriesOf(message: UIMessage): readonly TurnCarrier[] {
  const { turns = [] } = messageCarrier(message)
  return turns.filter((entry) => entry.turn && entry.index !== undefined)
}

function rebuildTurn({ index, turn, messages }: TurnCarrier, placed: Placements): Turn {
  if (turn?.['turn_type'] === 'user')
    return { ...turn, parts: placed.partsAt(`${index}`) } as unknown as Turn
  if (!messages) return turn as unknown as Turn
  const rebuilt = messages.map((message, place) => {
    const { shown } = message
    if (message['message_type'] === 'system') {
      if (typeof shown !== 'string') return message
      return { ...omitKeys(message, 'shown'), event_data: placed.dataOf(shown) }
    }
    return 'parts' in message ? message : { ...message, parts: placed.partsAt(`${index}.${place}`) }
  })
  return { ...turn, messages: rebuilt } as unknown as Turn
}

/** The parts and content items that were read, by their position in the thread. */
class Placements {
  readonly #values = new Map<string, unknown>()
  readonly #prompts = new Map<string, unknown>()
  readonly #data = new Map<string, unknown>()

  read(part: UIMessagePart): void {
    if (isToolPart(part)) return this.#readTool(part as OpenToolPart)
    switch (part.type) {
      case 'text':
      case 'reasoning':
        return this.#place(carried(part.providerMetadata), part.text)
      case 'file':
      case 'reasoning-file':
        return this.#place(carried(part.providerMetadata), part.url)
      case 'steering-message':
        for (const item of part.parts) this.read(item)
        return
      case 'step-start':
      case 'source-url':
      case 'source-document':
      case 'custom':
        return
      default:
        if ('data' in part) this.#readData(part satisfies DataUIPart)
    }
  }

  #readTool(tool: OpenToolPart): void {
    const call = carried(tool.callProviderMetadata)
    this.#place(call, tool.input)
    if (call.result) this.#place(call.result, undefined)
    const shown = tool.state === 'output-available' ? tool.output : tool.errorText
    this.#place(carried(tool.resultProviderMetadata), shown)
  }

  #readData(part: DataUIPart): void {
    const { id, data, type } = part
    if (id === undefined) return
    if (type !== 'data-tp-part') this.#data.set(id, data)
    else if (typeof data === 'object' && data !== null)
      this.#place({ ...data, at: id.slice('tp-'.length) }, undefined)
  }

  #place(carrier: PartCarrier, shown: unknown): void {
    const { at, prompt, from } = carrier
    if (typeof at !== 'string') return
    if (prompt !== undefined) this.#prompts.set(at.slice(0, at.lastIndexOf('.')), prompt)
    if (from !== 'data') {
      this.#values.set(at, restore(carrier, shown))
      return
    }
    // The bytes of the data URL are put back where they were: on a content item, or on the content of a file
    // part.
    const data = dataUrlBody(String(shown)) ?? ''
    const part = carrier.part as { content?: object }
    const { content } = part
    this.#values.set(at, content ? { ...part, content: { ...content, data } } : { ...part, data })
  }

  dataOf(id: string): unknown {
    return this.#data.get(id)
  }

  /** Returns the parts below a position, in order. */
  partsAt(at: string): MessagePart[] {
    const parts: MessagePart[] = []
    for (let index = 0; ; index++) {
      const place = `${at}.${index}`
      if (this.#values.has(place)) parts.push(this.#values.get(place) as MessagePart)
      else if (this.#prompts.has(place)) parts.push(this.#promptAt(place))
      else return parts
    }
  }

  #promptAt(at: string): MessagePart {
    const content: unknown[] = []
    for (let index = 0; this.#values.has(`${at}.${index}`); index++)
      content.push(this.#values.get(`${at}.${index}`))
    return { ...(this.#prompts.get(at) as object), content } as MessagePart
  }
}

/**
 * Creates a turn for the approval answers and outputs that the client has added to calls of restored turns;
 * the next run starts with them.
 */
function addedByClient(
  message: UIMessage,
  turns: readonly Turn[],
  at: string,
): AgentTurn | undefined {
  const last = turns.findLast((turn) => turn.turn_type === 'agent')
  if (!last) return undefined
  const answered = answeredApprovals(turns)
  const events: SystemMessage[] = []
  const parts: MessagePart[] = []
  for (const part of message.parts) {
    if (!isToolPart(part)) continue
    const tool = part as OpenToolPart
    const call = carried(tool.callProviderMetadata)
    if (tool.approval?.approved !== undefined && !answered.has(tool.approval.id) && !call.result) {
      events.push(...approvalEvents(tool, at).slice(1))
    }
    if (call.result || carried(tool.resultProviderMetadata).at !== undefined) continue
    const outcome = outcomePart(tool, false)
    if (outcome) parts.push(outcome)
  }
  if (events.length + parts.length === 0) return undefined
  const { agent_id } = last
  const request: ThreadMessage[] =
    parts.length === 0 ? [] : [{ message_type: 'request', timestamp: at, agent_id, parts }]
  return {
    turn_type: 'agent',
    agent_id,
    started_at: at,
    completed_at: at,
    messages: [...events, ...request],
  }
}

function answeredApprovals(turns: readonly Turn[]): ReadonlySet<string> {
  const ids = new Set<string>()
  for (const turn of turns) {
    if (turn.turn_type !== 'agent' || !Array.isArray(turn.messages)) continue
    for (const message of turn.messages) {
      if (message.message_type !== 'system' || message.event_type !== 'tool.approval.responded')
        continue
      const { approval_id } = (message.event_data ?? {}) as { approval_id?: string }
      if (approval_id !== undefined) ids.add(approval_id)
    }
  }
  return ids
}
