import type {
  AgentTurn,
  SystemMessage,
  Thread,
  ThreadMessage,
  Turn,
} from '../../document/thread.ts'
import { joinPointer } from '../../issue.ts'
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
import { agentTurns, type AssistantContext } from './from-ui-assistant.ts'
import { approvalEvents, outcomePart } from './from-ui-parts.ts'
import { endEvents, interruption } from './stream-ending.ts'
import { dataUrlBody } from '../bridge/media.ts'
import type { DataUIPart, OpenToolPart, UIMessage, UIMessagePart } from './types.ts'

/** The turns that are restored from the thread data in the metadata of messages (`carry: 'all'`). */
export interface RebuiltTurns {
  readonly thread: Partial<Thread> | undefined
  covers(message: UIMessage): boolean
  /**
   * Returns the turns in the metadata of the message, then what was added to the message later, by the client
   * or by a stream that continued it.
   */
  turnsOf(message: UIMessage, context: AssistantContext): Turn[]
}

/**
 * Restores the turns from the thread data in the metadata of the messages. All messages are read first,
 * because a tool return is stored in the message of its call, which may belong to another turn.
 */
export function rebuildTurns(messages: readonly UIMessage[]): RebuiltTurns {
  const placements = new Placements()
  for (const message of messages) for (const part of message.parts) placements.read(part)
  const first = messageCarrier(messages[0])
  return {
    thread: first.thread as Partial<Thread> | undefined,
    covers: (message) => entriesOf(message).length > 0,
    turnsOf: (message, context) => {
      const turns = entriesOf(message).map((entry) => rebuildTurn(entry, placements))
      if (message.role === 'assistant') return withAdditions(message, turns, context)
      for (const [index, part] of message.parts.entries())
        if (!isPlaced(part)) {
          const pointer = joinPointer(context.pointer, 'parts', index)
          context.lost.push({ pointer, reason: 'a restored user turn has no place for a new part' })
        }
      return turns
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
    const output = tool.state === 'output-available' ? tool.output : tool.errorText
    this.#place(carried(tool.resultProviderMetadata), output)
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
 * Appends a turn with what the metadata does not contain because it came later: answers and outputs of the
 * client, then the parts of a stream that continued the message. If nothing came, only the way in which the
 * stream ended is recorded, in the last turn.
 */
function withAdditions(
  message: UIMessage,
  turns: readonly Turn[],
  context: AssistantContext,
): Turn[] {
  const last = turns.findLast(isAgentTurn)
  const from = firstAddition(message.parts, turns)
  const { at } = context
  const agent = last?.agent_id ?? context.agent
  const answers = addedByClient(message.parts.slice(0, from), turns, { agent_id: agent, at })
  if (from === message.parts.length && answers.length === 0)
    return turns.map((turn) => (turn === last ? withEnd(last, context) : turn))
  const [first, ...more] = agentTurns(
    { ...message, metadata: undefined },
    { ...context, agent, from },
  )
  // The message's id is that of its first turn.
  const { turn_id: _, ...added } = first!
  return [...turns, { ...added, messages: [...answers, ...added.messages] }, ...more]
}

/** Records errors and an interruption of the stream in the turn that it restored. */
function withEnd(turn: AgentTurn, { notes, at }: AssistantContext): AgentTurn {
  const events = notes ? endEvents(notes, at) : []
  const marks = notes && turn.completion_status === undefined ? interruption(notes, at) : {}
  const turnWithEnd = { ...turn, ...marks }
  if (events.length === 0) return turnWithEnd
  return { ...turnWithEnd, completed_at: at, messages: [...turn.messages, ...events] }
}

/**
 * Returns the index of the first part that was added after the metadata was written: the step after as many
 * steps as there are restored responses, or content without a position behind the last part that has one.
 */
function firstAddition(parts: readonly UIMessagePart[], turns: readonly Turn[]): number {
  let steps = 0
  for (const { messages } of turns.filter(isAgentTurn))
    steps += messages.filter(({ message_type }) => message_type === 'response').length
  const last = parts.findLastIndex(isPlaced)
  const first = parts.findIndex((part, index) =>
    part.type === 'step-start' ? steps-- === 0 : index > last && !WITHOUT_PLACE.has(part.type),
  )
  return first < 0 ? parts.length : first
}

/** Parts of events that are wholly in the metadata, so that the parts themselves have no position. */
const WITHOUT_PLACE: ReadonlySet<string> = new Set(['source-url', 'source-document', 'custom'])

/** Whether a part was made from a thread, with its position in it. */
function isPlaced(part: UIMessagePart): boolean {
  if (isToolPart(part)) return carried((part as OpenToolPart).callProviderMetadata).at !== undefined
  if (part.type === 'steering-message') return part.parts.some(isPlaced)
  if ('data' in part) return part.type === 'data-tp-turn' || part.id?.startsWith('tp-') === true
  return 'providerMetadata' in part && carried(part.providerMetadata).at !== undefined
}

/** Returns the approval answers and outputs that the client has added to calls; the next run starts with them. */
function addedByClient(
  parts: readonly UIMessagePart[],
  turns: readonly Turn[],
  { agent_id, at }: { readonly agent_id: string; readonly at: string },
): (SystemMessage | ThreadMessage)[] {
  const approvalIds = answeredApprovals(turns)
  const events: SystemMessage[] = []
  const outcomes: MessagePart[] = []
  for (const part of parts) {
    if (!isToolPart(part)) continue
    const tool = part as OpenToolPart
    const call = carried(tool.callProviderMetadata)
    if (
      tool.approval?.approved !== undefined &&
      !approvalIds.has(tool.approval.id) &&
      !call.result
    ) {
      events.push(...approvalEvents(tool, at).slice(1))
    }
    if (call.result || carried(tool.resultProviderMetadata).at !== undefined) continue
    const outcome = outcomePart(tool, false)
    if (outcome) outcomes.push(outcome)
  }
  if (outcomes.length === 0) return events
  return [...events, { message_type: 'request', timestamp: at, agent_id, parts: outcomes }]
}

function answeredApprovals(turns: readonly Turn[]): ReadonlySet<string> {
  const ids = new Set<string>()
  for (const { messages } of turns.filter(isAgentTurn)) {
    for (const message of messages) {
      if (message.message_type !== 'system' || message.event_type !== 'tool.approval.responded')
        continue
      const { approval_id } = (message.event_data ?? {}) as { approval_id?: string }
      if (approval_id !== undefined) ids.add(approval_id)
    }
  }
  return ids
}

/** True for a turn of an agent with a list of messages, which forged metadata may lack. */
function isAgentTurn(turn: Turn): turn is AgentTurn {
  return turn.turn_type === 'agent' && Array.isArray(turn.messages)
}
