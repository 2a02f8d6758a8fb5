import { systemClock, timeOrderedIds, type Clock, type IdSource } from '@skein/base'
import type { Converted, Loss } from '../../issue.ts'
import { instantOf } from '../../document/timestamp.ts'
import type { AgentConfig, Thread, Turn } from '../../document/thread.ts'
import { CARRIER, messageCarrier, omitKeys } from './carrier.ts'
import { rebuildTurns } from './from-ui-carried.ts'
import { agentTurns } from './from-ui-assistant.ts'
import { userPrompt, type StreamNotes } from './from-ui-parts.ts'
import type { UIMessage } from './types.ts'

/** Settings of `fromUIMessages`: who spoke and when, for messages that do not say. */
export interface FromUIMessagesOptions {
  /** Fields of the thread; a carried thread's own fields stand above them. */
  readonly thread?: Partial<Omit<Thread, 'version' | 'turns'>>
  /** The agent that speaks where no part names one. Default `assistant`. */
  readonly agent?: { readonly agent_id: string; readonly agent_name: string }
  readonly clock?: Clock
  readonly ids?: IdSource
  /** What the stream told about the last message; given by the decoder. */
  readonly notes?: StreamNotes
}

/**
 * A chat's messages as a thread. Messages that carry their thread (`carry: 'all'`) give it back unchanged, and what the
 * client has added since is appended; others are read by their steps.
 */
export function fromUIMessages(
  messages: readonly UIMessage[],
  options: FromUIMessagesOptions = {},
): Converted<Thread> {
  const { clock = systemClock, agent = { agent_id: 'assistant', agent_name: 'Assistant' } } =
    options
  const lost: Loss[] = []
  const agents: Record<string, AgentConfig> = { ...options.thread?.agents }
  const turns: Turn[] = []
  const times = turnTimes(messages, clock)
  const rebuilt = rebuildTurns(messages)
  messages.forEach((message, index) => {
    const at = times[index]!
    const pointer = `/${index}`
    if (rebuilt.covers(message)) turns.push(...rebuilt.turnsOf(message, at))
    else if (message.role === 'user') {
      const parts = userPrompt(message.parts, pointer, lost)
      const turn = { turn_type: 'user', turn_id: message.id, submitted_at: at, parts } as const
      turns.push(withClient(turn, message))
    } else if (message.role === 'assistant') {
      const notes = index === messages.length - 1 ? options.notes : undefined
      const context = { at, pointer, lost, agent: agent.agent_id, notes }
      const [first, ...more] = agentTurns(message, context)
      turns.push(...(first ? [withClient(first, message)] : []), ...more)
    } else {
      const reason = 'system prompts are configuration and are not stored in a thread'
      lost.push({ pointer, reason })
    }
    nameAgents(agents, message, { ...agent, created_at: at })
  })
  const { thread, ids = timeOrderedIds({ clock }) } = options
  const now = new Date(clock.now()).toISOString()
  const value: Thread = {
    version: '2.0.0',
    thread_id: rebuilt.thread?.thread_id ?? thread?.thread_id ?? ids(),
    created_at: times[0] ?? now,
    updated_at: times.at(-1) ?? now,
    ...thread,
    agents,
    ...rebuilt.thread,
    turns,
  }
  return { value, lost }
}

/** Keeps the client's own metadata on the turn, without the carrier, which has been read by now. */
function withClient<T extends Turn>(turn: T, { metadata }: UIMessage): T {
  if (metadata === undefined || metadata === null) return turn
  const client_metadata =
    typeof metadata === 'object' ? omitKeys(metadata, CARRIER) : { value: metadata }
  return Object.keys(client_metadata).length === 0 ? turn : { ...turn, client_metadata }
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

/** When each message was made: as Pydantic AI's adapter says, else like its neighbours, else now. */
function turnTimes(messages: readonly UIMessage[], clock: Clock): string[] {
  const known = messages.map(({ metadata }) => {
    const told = (metadata as { pydantic_ai?: { timestamp?: unknown } } | null | undefined)
      ?.pydantic_ai?.timestamp
    return typeof told === 'string' && !Number.isNaN(instantOf(told)) ? told : undefined
  })
  let time = known.find((value) => value !== undefined) ?? new Date(clock.now()).toISOString()
  return known.map((value) => (time = value ?? time))
}
