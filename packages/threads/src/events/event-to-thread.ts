import { assistantParts, userParts } from './message-parts.ts'
import type { LoggedOutcome, ThreadEvent, UnknownThreadEvent } from './event.ts'
import { systemMessageOf } from './system-message.ts'
import type { Converted, Loss } from '../issue.ts'
import { foldThread } from './reduce-thread.ts'
import type {
  AgentTurnState,
  MessageItem,
  ResultItem,
  FoldedThread,
  TurnItem,
  UserTurnState,
} from './folded-thread.ts'
import type {
  AgentConfig,
  AgentTurn,
  SystemMessage,
  Thread,
  ThreadMessage,
  Turn,
  UserTurn,
} from '../document/thread.ts'
import type { MessagePart } from '../document/part.ts'
import { sumUsage } from '../document/stats.ts'

/** Settings of `threadFromState` and `threadFromEvents`. */
interface ThreadFromStateOptions {
  /**
   * Whether to include a turn that has not ended, marked as interrupted. By default only complete turns are
   * included.
   */
  readonly includeRunning?: boolean
}

/** Builds the ThreadProtocol document of a list of events. */
export function threadFromEvents(
  events: Iterable<ThreadEvent | UnknownThreadEvent>,
  options?: ThreadFromStateOptions,
): Converted<Thread> {
  return threadFromState(foldThread(events), options)
}

/**
 * Builds the ThreadProtocol document of a live thread: each turn of an agent becomes an AgentTurn, each turn
 * of a person a UserTurn, and the other events in these turns become system messages.
 */
export function threadFromState(
  state: FoldedThread,
  { includeRunning = false }: ThreadFromStateOptions = {},
): Converted<Thread> {
  const losses: Loss[] = []
  const turns: Turn[] = []
  // A UserTurn cannot contain events, so the events of a user turn, and those before the first turn, are put
  // at the start of the next agent turn.
  let waiting = systemMessages(state.beforeTurns ?? [], state)
  state.turns.forEach((turn, index) => {
    const pointer = `/turns/${index}`
    if (turn.kind === 'user') {
      waiting.push(...systemMessages(turn.items, state))
      turns.push(userTurn(turn, pointer, losses))
    } else if (turn.outcome === 'running' && !includeRunning) {
      losses.push({ pointer, reason: 'the turn is still running' })
    } else {
      turns.push(agentTurn(turn, state, waiting, pointer, losses))
      waiting = []
    }
  })
  for (const { event_type } of waiting) {
    losses.push({
      pointer: '/turns',
      reason: `${event_type} came after the last agent turn and has no place yet`,
    })
  }
  const { threadId, createdAt, updatedAt, title, metadata, parentThreadId } = state
  // An agent that was never registered gets an entry, because the agents of turns and messages must be in the
  // registry.
  const agents: Record<string, AgentConfig> = { ...state.agents }
  for (const turn of turns) {
    if (turn.turn_type !== 'agent') continue
    for (const item of [turn, ...turn.messages]) {
      if (!('agent_id' in item) || Object.hasOwn(agents, item.agent_id)) continue
      const { agent_id } = item
      agents[agent_id] = { agent_id, agent_name: agent_id, created_at: createdAt }
    }
  }
  const value: Thread = {
    version: '2.0.0',
    thread_id: threadId,
    created_at: createdAt,
    updated_at: updatedAt,
    title,
    metadata: Object.keys(metadata).length > 0 ? metadata : undefined,
    parent_thread_id: parentThreadId,
    agents,
    turns,
  }
  return { value, lost: losses }
}

/**
 * The fields that this conversion writes although ThreadProtocol does not define them. Other implementations
 * must keep unknown fields, so their values are not lost.
 */
interface Unnamed {
  readonly is_silent?: boolean
  readonly continues?: string
  readonly message_id?: string
  readonly upp_metadata?: object
  readonly provider_finish_reason?: string
  /** Whether people may rely on an answer that a gate checks: `pending`, `refused` or `delivered`. */
  readonly delivery?: string
}

function systemMessages(items: readonly TurnItem[], { interrupts }: FoldedThread): SystemMessage[] {
  return items.flatMap((item) =>
    item.kind === 'event' ? systemMessageOf(item.event, (id) => interrupts[id]) : [],
  )
}

/** Returns the callback for the blocks of a prompt that have no place in the document. */
function reportLoss(pointer: string, lost: Loss[]): (index: number, reason: string) => void {
  return (_index, reason) => lost.push({ pointer, reason })
}

function userTurn(
  { turnId, startedAt, userId, items }: UserTurnState,
  pointer: string,
  lost: Loss[],
): UserTurn {
  const messages = items.filter(
    (item) => item.kind === 'message' && !item.isRemoved,
  ) as MessageItem[] // the filter left only messages
  const parts = messages.flatMap(({ message }) =>
    message.type === 'user' ? userParts(message.content, reportLoss(pointer, lost)) : [],
  )
  const turn: UserTurn & Unnamed = {
    turn_type: 'user',
    turn_id: turnId,
    submitted_at: startedAt,
    user_id: userId,
    is_silent: messages.some((item) => item.isSilent) || undefined,
    parts,
  }
  return turn
}

function agentTurn(
  turn: AgentTurnState,
  state: FoldedThread,
  before: readonly SystemMessage[],
  pointer: string,
  lost: Loss[],
): AgentTurn {
  const { turnId, agentId, startedAt, endedAt = state.updatedAt, continues } = turn
  const messages = [
    ...before,
    ...agentMessages(turn, state, reportLoss(pointer, lost)),
    ...draftMessage(turn, endedAt, pointer, lost),
    ...systemMessages(turn.draft?.events ?? [], state),
  ]
  const usage = sumUsage(messages.map((message) => (message as ThreadMessage).usage))
  const { outcome } = turn
  const isWhole = outcome === 'completed' || outcome === 'parked'
  const reason =
    turn.reason ??
    (outcome === 'failed' ? 'error' : outcome === 'running' ? 'running' : 'user_cancelled')
  const document: AgentTurn & Unnamed = {
    turn_type: 'agent',
    turn_id: turnId,
    agent_id: agentId,
    started_at: startedAt,
    completed_at: endedAt,
    continues,
    completion_status: isWhole ? undefined : 'interrupted',
    interruption: isWhole ? undefined : { reason, interrupted_at: endedAt },
    messages,
    total_usage: usage,
  }
  return document
}

function* agentMessages(
  turn: AgentTurnState,
  state: FoldedThread,
  onLoss: (index: number, reason: string) => void,
): Generator<ThreadMessage | SystemMessage> {
  let results: ResultItem[] = []
  for (const item of turn.items) {
    if (item.kind === 'result') {
      results.push(item)
      continue
    }
    // Tool result messages are skipped, because their results are stored as separate items.
    if (item.kind === 'message' && (item.isRemoved || item.message.type === 'tool_result')) continue
    if (results.length > 0) yield requestOf(results, turn.agentId)
    results = []
    yield item.kind === 'event'
      ? systemMessageOf(item.event, (id) => state.interrupts[id])
      : toThreadMessage(item, turn, onLoss)
  }
  if (results.length > 0) yield requestOf(results, turn.agentId)
}

function toThreadMessage(
  item: MessageItem,
  turn: AgentTurnState,
  onLoss: (index: number, reason: string) => void,
): ThreadMessage {
  const { message, at, finishReason } = item
  const fields = {
    timestamp: at,
    agent_id: item.agentId ?? turn.agentId,
    message_id: message.id,
    upp_metadata: message.metadata,
    is_silent: item.isSilent || undefined,
  } satisfies Partial<ThreadMessage> & Unnamed
  switch (message.type) {
    case 'user':
      return { message_type: 'request', ...fields, parts: userParts(message.content, onLoss) }
    case 'tool_result':
      return { message_type: 'request', ...fields, parts: [] }
    case 'assistant': {
      // ThreadProtocol has five finish reasons; a vendor's other value is stored in `provider_finish_reason`.
      const reason = FINISH_REASONS.find((candidate) => candidate === finishReason)
      const response: ThreadMessage & Unnamed = {
        message_type: 'response',
        ...fields,
        parts: assistantParts(message),
        model_name: item.modelName,
        provider_name: item.providerName,
        provider_response_id: item.providerResponseId,
        usage: item.usage,
        finish_reason: reason,
        provider_finish_reason: reason ? undefined : finishReason,
        delivery: item.delivery,
      }
      return response
    }
    default:
      return message satisfies never
  }
}

const FINISH_REASONS = ['stop', 'length', 'content_filter', 'tool_call', 'error'] as const

function requestOf(results: readonly ResultItem[], agent_id: string): ThreadMessage {
  const timestamp = results.at(-1)!.at
  const parts = results.map(({ toolCallId, toolName, outcome, result, at }): MessagePart => {
    const ids = { tool_name: toolName, tool_call_id: toolCallId }
    const content = result ?? null
    if (outcome !== 'retry')
      return { part_kind: 'tool-return', ...ids, ...STATUS[outcome], content, timestamp: at }
    const text =
      typeof content === 'string' || Array.isArray(content) ? content : JSON.stringify(content)
    return { part_kind: 'retry-prompt', content: text, ...ids, timestamp: at }
  })
  return { message_type: 'request', timestamp, agent_id, parts }
}

type Settled = { status: 'success' | 'error'; outcome?: 'failed' | 'denied' | 'interrupted' }

const STATUS: Readonly<Record<Exclude<LoggedOutcome, 'retry'>, Settled>> = {
  success: { status: 'success' },
  failed: { status: 'error', outcome: 'failed' },
  denied: { status: 'error', outcome: 'denied' },
  interrupted: { status: 'error', outcome: 'interrupted' },
  unknown: { status: 'error', outcome: 'interrupted' },
}

/**
 * Creates a response from the content that was streamed before the turn broke off. Text and thinking are
 * kept; calls, whose arguments are incomplete, are reported as lost.
 */
function draftMessage(
  { draft, agentId }: AgentTurnState,
  at: string,
  pointer: string,
  lost: Loss[],
): ThreadMessage[] {
  if (!draft) return []
  const parts = draft.blocks.flatMap((block): MessagePart[] => {
    switch (block.type) {
      case 'text':
        return [{ part_kind: 'text', content: block.text }]
      case 'reasoning':
        return [{ part_kind: 'thinking', content: block.text }]
      case 'tool_call':
        lost.push({ pointer, reason: `the arguments of call ${block.id} never became complete` })
        return []
      default:
        return block satisfies never
    }
  })
  if (parts.length === 0) return []
  return [{ message_type: 'response', timestamp: at, agent_id: agentId, parts }]
}
