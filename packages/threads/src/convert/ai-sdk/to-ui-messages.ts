import type { AgentTurn, Thread, Turn, UserTurn } from '../../document/thread.ts'
import { CARRIER, omitKeys, type MessageCarrier, type TurnCarrier } from './carrier.ts'
import { UIPartBuilder, type Carry } from './to-ui-parts.ts'
import type { UIMessage } from './types.ts'

/** Settings of `toUIMessages`. */
export interface ToUIMessagesOptions {
  /**
   * `public` (default) includes content, attribution and outcomes. `all` also carries everything else of the
   * thread in metadata, so that `fromUIMessages` restores it unchanged: this includes usage, provider ids,
   * signatures and instructions. The client can see, and change, everything that it is sent.
   */
  readonly carry?: Carry
}

/**
 * Converts a thread to the messages of a chat. Consecutive agent turns become one assistant message, as one
 * response does in a stream; each part names its agent.
 */
export function toUIMessages(
  thread: Thread,
  { carry = 'public' }: ToUIMessagesOptions = {},
): UIMessage[] {
  const groups: Group[] = []
  thread.turns.forEach((turn, index) => {
    const last = groups.at(-1)
    if (last && !isUserTurn(turn) && !isUserTurn(last.turns[0]!)) last.turns.push(turn)
    else groups.push({ start: index, turns: [turn] })
  })
  const builder = new UIPartBuilder(carry)
  const messages: UIMessage[] = []
  for (const group of groups) {
    const message = isUserTurn(group.turns[0]!)
      ? userMessage(builder, thread, group)
      : assistantMessage(builder, thread, group)
    if (message) messages.push(message)
  }
  const [first] = messages
  if (carry === 'all' && first) {
    // The fields of the thread itself are stored in the metadata of its first message.
    const metadata = first.metadata as { [CARRIER]: MessageCarrier }
    const root = omitKeys(thread, 'turns') as Record<string, unknown>
    first.metadata = { ...metadata, [CARRIER]: { ...metadata[CARRIER], thread: root } }
  }
  return messages
}

/** Returns the message id of a turn: the turn's own id, or one derived from its position. */
export function turnIdOf(thread: Thread, index: number): string {
  return thread.turns[index]?.turn_id ?? `${thread.thread_id}:${index}`
}

/** One user turn, or the agent turns up to the next user turn. */
interface Group {
  readonly start: number
  readonly turns: Turn[]
}

function isUserTurn(turn: Turn): turn is UserTurn {
  return turn.turn_type === 'user'
}

function userMessage(
  builder: UIPartBuilder,
  thread: Thread,
  { start, turns }: Group,
): UIMessage | undefined {
  const turn = turns[0] as UserTurn
  const parts = builder.begin()
  turn.parts.forEach((part, index) => builder.addUserPart(part, `${start}.${index}`))
  if (builder.carry === 'all') {
    // A user message must have a part, even when the turn contains only tool results.
    if (parts.length === 0) parts.push({ type: 'data-tp-turn', id: `tp-${start}`, data: {} })
    const entry = { index: start, turn: omitKeys(turn, 'parts') as Record<string, unknown> }
    return message('user', thread, start, parts, messageMetadata(turns, { turns: [entry] }))
  }
  return parts.length === 0
    ? undefined
    : message('user', thread, start, parts, messageMetadata(turns))
}

function assistantMessage(
  builder: UIPartBuilder,
  thread: Thread,
  { start, turns }: Group,
): UIMessage {
  const parts = builder.begin()
  const entries = turns.map((turn, offset): TurnCarrier => {
    const index = start + offset
    const { agent_id } = turn as AgentTurn
    const name = Object.hasOwn(thread.agents, agent_id)
      ? thread.agents[agent_id]?.agent_name
      : undefined
    const who = {
      turn_id: turnIdOf(thread, index),
      agent_id,
      agent_name: name,
    }
    builder.beginTurn(who.turn_id)
    if (offset > 0) parts.push({ type: 'data-tp-turn', id: who.turn_id, data: { ...who } })
    return { ...who, ...addAgentTurn(builder, turn as AgentTurn, index) }
  })
  return message('assistant', thread, start, parts, messageMetadata(turns, { turns: entries }))
}

/** Adds the parts of a turn to the message, and returns the data about the turn that belongs in the metadata. */
function addAgentTurn(builder: UIPartBuilder, turn: AgentTurn, index: number): TurnCarrier {
  if (!Array.isArray(turn.messages)) {
    // A turn of an unknown type has nothing to show; with `carry: 'all'` it is carried in the metadata.
    return builder.carry === 'all'
      ? { index, turn: turn as unknown as Record<string, unknown> }
      : {}
  }
  const messages = turn.messages.map((entry, place) =>
    builder.addMessage(entry, `${index}.${place}`),
  )
  if (builder.carry !== 'all') return {}
  return { index, turn: omitKeys(turn, 'messages') as Record<string, unknown>, messages }
}

function messageMetadata(turns: readonly Turn[], carrier?: MessageCarrier): object | undefined {
  const client = turns.map((turn) => (turn as UserTurn).client_metadata)
  const metadata = Object.assign({}, ...client, carrier && { [CARRIER]: carrier }) as object
  return Object.keys(metadata).length === 0 ? undefined : metadata
}

function message(
  role: UIMessage['role'],
  thread: Thread,
  index: number,
  parts: UIMessage['parts'],
  metadata: object | undefined,
): UIMessage {
  const fields = { id: turnIdOf(thread, index), role, parts }
  return metadata === undefined ? fields : { ...fields, metadata }
}
