import { isObject, systemClock, timeOrderedIds, type Clock, type IdSource } from '@skein/base'
import { joinPointer, type Converted, type Loss } from '../../issue.ts'
import { instantOf } from '../../document/timestamp.ts'
import type { AgentConfig, Thread, Turn, UserTurn } from '../../document/thread.ts'
import { isToolPart } from './assemble-tools.ts'
import { CARRIER, carried, messageCarrier, omitKeys } from './carrier.ts'
import { rebuildTurns } from './from-ui-carried.ts'
import { agentTurns } from './from-ui-assistant.ts'
import { outcomePart, userPrompt } from './from-ui-parts.ts'
import type { StreamNotes } from './stream-ending.ts'
import type { OpenToolPart, UIMessage, UIMessagePart } from './types.ts'

/** Settings of `fromUIMessages`: values for data that the messages do not contain. */
export interface FromUIMessagesOptions {
  /** Fields of the thread. They override those of a thread in the metadata of the messages. */
  readonly thread?: Partial<Omit<Thread, 'version' | 'turns'>>
  /**
   * What is done with the thread data in the metadata of messages (`toUIMessages` with `carry`). Whoever
   * wrote the messages also wrote this data, so `ignore`, the default, reads only what a page shows: its
   * parts, times and its own metadata. `trust` restores turns, agents and attribution from this data; it is
   * for messages from a store of your own, never for the body of a request.
   */
  readonly carrier?: 'ignore' | 'trust'
  /** The agent to use for parts that name none. Default `assistant`. */
  readonly agent?: { readonly agent_id: string; readonly agent_name: string }
  readonly clock?: Clock
  readonly ids?: IdSource
  /** Data of the stream that the last message does not contain; set by the stream decoder. */
  readonly notes?: StreamNotes
}

/**
 * Converts a chat's messages to a thread, step by step. With `carrier: 'trust'`, messages whose metadata has
 * their thread (`carry: 'all'`) restore it unchanged, and additions of the client are appended.
 */
export function fromUIMessages(
  given: readonly UIMessage[],
  options: FromUIMessagesOptions = {},
): Converted<Thread> {
  const isTrusted = options.carrier === 'trust'
  const messages = isTrusted ? given : given.map(withoutCarrier)
  const { clock = systemClock, agent = { agent_id: 'assistant', agent_name: 'Assistant' } } =
    options
  const losses: Loss[] = []
  if (!isTrusted) losses.push(...unreadCarriers(given, agent.agent_id, options.notes))
  const turns: Turn[] = []
  const times = turnTimes(messages, clock)
  const rebuilt = rebuildTurns(messages)
  const agents: Record<string, AgentConfig> = {
    ...rebuilt.thread?.agents,
    ...options.thread?.agents,
  }
  messages.forEach((message, index) => {
    const at = times[index]!
    const pointer = `/${index}`
    const notes = index === messages.length - 1 ? options.notes : undefined
    const context = {
      at,
      pointer,
      lost: losses,
      agent: agent.agent_id,
      notes,
      isTrusted,
      given: given[index]!,
    }
    if (rebuilt.covers(message)) {
      const own = rebuilt.turnsOf(message, context)
      turns.push(...own.slice(0, -1), withClient(own.at(-1)!, message, own))
    } else if (message.role === 'user') {
      const parts = userPrompt(message.parts, pointer, losses)
      const turn = { turn_type: 'user', turn_id: message.id, submitted_at: at, parts } as const
      turns.push(withClient(turn, message))
    } else if (message.role === 'assistant') {
      const [first, ...more] = agentTurns(message, context)
      turns.push(...(first ? [withClient(first, message)] : []), ...more)
    } else {
      const reason = 'system prompts are configuration and are not stored in a thread'
      losses.push({ pointer, reason })
    }
    nameAgents(agents, message, { ...agent, created_at: at })
  })
  const { thread, ids = timeOrderedIds({ clock }) } = options
  const now = new Date(clock.now()).toISOString()
  const value: Thread = {
    version: '2.0.0',
    thread_id: thread?.thread_id ?? rebuilt.thread?.thread_id ?? ids(),
    created_at: times[0] ?? now,
    updated_at: times.at(-1) ?? now,
    ...rebuilt.thread,
    ...thread,
    agents,
    turns,
  }
  return { value, lost: losses }
}

/**
 * Returns the message without the data under our key, on the message and on its parts. Data parts of this
 * package stay, so that the parts keep their positions; the readers report them as lost.
 */
function withoutCarrier(message: UIMessage): UIMessage {
  const parts = message.parts.map(partWithout)
  const { metadata } = message
  return isObject(metadata)
    ? { ...message, parts, metadata: omitKeys(metadata, CARRIER) }
    : { ...message, parts }
}

/**
 * Names the thread data that is not read because the messages are not trusted, where the thread says something else
 * without it: the outcome of a call, and the agents of a message. Data parts of this package are reported where they
 * are read.
 */
function unreadCarriers(
  messages: readonly UIMessage[],
  agentId: string,
  notes: StreamNotes | undefined,
): Loss[] {
  return messages.flatMap((message, index) => {
    const losses: Loss[] = []
    const agents: unknown[] = messageCarrier(message).turns?.map(({ agent_id }) => agent_id) ?? []
    message.parts.forEach((part, place) => {
      const fields = part as { readonly [key in (typeof METADATA)[number]]?: unknown }
      agents.push(...METADATA.map((name) => carried(fields[name]).agent_id))
      if (!isToolPart(part)) return
      const isRefusal = notes?.refusals.has(part) ?? false
      const [told, read] = [part, partWithout(part)].map((one) =>
        outcomePart(one as OpenToolPart, isRefusal),
      )
      if (JSON.stringify(told) === JSON.stringify(read)) return
      const pointer = joinPointer('', index, 'parts', place, 'resultProviderMetadata', CARRIER)
      losses.push({ pointer, reason: "how a call ended is not read without carrier: 'trust'" })
    })
    if (agents.some((agent) => typeof agent === 'string' && agent !== agentId)) {
      const pointer = joinPointer('', index, 'metadata', CARRIER)
      losses.unshift({
        pointer,
        reason: "which agent wrote it is not read without carrier: 'trust'",
      })
    }
    return losses
  })
}

const METADATA = ['providerMetadata', 'callProviderMetadata', 'resultProviderMetadata'] as const

function partWithout(part: UIMessagePart): UIMessagePart {
  const fields = part as { readonly [key in (typeof METADATA)[number]]?: unknown }
  const changes: Record<string, unknown> = {}
  for (const name of METADATA) {
    const metadata = fields[name]
    if (!isObject(metadata) || !Object.hasOwn(metadata, CARRIER)) continue
    const rest = omitKeys(metadata, CARRIER)
    changes[name] = Object.keys(rest).length === 0 ? undefined : rest
  }
  if (part.type === 'steering-message') changes['parts'] = part.parts.map(partWithout)
  return Object.keys(changes).length === 0 ? part : ({ ...part, ...changes } as UIMessagePart)
}

/**
 * Stores the client's own metadata on the turn, without our thread data in it, which has already been read,
 * and without values that the `restored` turns of the message already have.
 */
function withClient<T extends Turn>(
  turn: T,
  { metadata }: UIMessage,
  restored: readonly Turn[] = [],
): T {
  if (metadata === undefined || metadata === null) return turn
  const client = typeof metadata === 'object' ? omitKeys(metadata, CARRIER) : { value: metadata }
  const earlier = Object.assign({}, ...restored.map(clientMetadata)) as Record<string, unknown>
  const additions = Object.entries(client).filter(
    ([key, value]) => JSON.stringify(value) !== JSON.stringify(earlier[key]),
  )
  if (additions.length === 0) return turn
  return { ...turn, client_metadata: { ...clientMetadata(turn), ...Object.fromEntries(additions) } }
}

function clientMetadata(turn: Turn): object | undefined {
  return (turn as UserTurn).client_metadata
}

function nameAgents(
  agents: Record<string, AgentConfig>,
  message: UIMessage,
  speaker: AgentConfig,
): void {
  if (message.role !== 'assistant') return
  const { turns: named = [] } = messageCarrier(message)
  for (const { agent_id, agent_name } of named) {
    if (typeof agent_id !== 'string' || Object.hasOwn(agents, agent_id)) continue
    agents[agent_id] = {
      agent_id,
      agent_name: agent_name ?? agent_id,
      created_at: speaker.created_at,
    }
  }
  if (named.length === 0 && !Object.hasOwn(agents, speaker.agent_id))
    agents[speaker.agent_id] = speaker
}

/**
 * Returns a time for each message: the one that Pydantic AI's adapter stored, else that of a neighbouring
 * message, else now.
 */
function turnTimes(messages: readonly UIMessage[], clock: Clock): string[] {
  const timestamps = messages.map(({ metadata }) => {
    const timestamp = (metadata as { pydantic_ai?: { timestamp?: unknown } } | null | undefined)
      ?.pydantic_ai?.timestamp
    return typeof timestamp === 'string' && !Number.isNaN(instantOf(timestamp))
      ? timestamp
      : undefined
  })
  let time = timestamps.find((value) => value !== undefined) ?? new Date(clock.now()).toISOString()
  return timestamps.map((value) => (time = value ?? time))
}
