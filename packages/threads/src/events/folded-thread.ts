import type { MessageJSON } from '@skein/base'
import type {
  DeliveryStatus,
  ErrorRaised,
  EvidenceAdded,
  GateDecided,
  InterruptRecord,
  InterruptAnswer,
  SubagentCreated,
  ThreadEvent,
  ThreadStatus,
  LoggedOutcome,
  TurnOutcome,
  UnknownThreadEvent,
} from './event.ts'
import type { AgentConfig, Usage } from '../document/thread.ts'

/** The state of a thread after some of its events: plain JSON, never changed in place. */
export interface FoldedThread {
  readonly threadId: string
  readonly createdAt: string
  readonly updatedAt: string
  readonly title?: string
  readonly parentThreadId?: string
  readonly metadata: Readonly<Record<string, unknown>>
  readonly agents: Readonly<Record<string, AgentConfig>>
  readonly turns: readonly TurnState[]
  /** The events that arrived before the first turn. */
  readonly beforeTurns?: readonly EventItem[]
  readonly status: ThreadStatus
  readonly statusText?: string
  readonly interrupts: Readonly<Record<string, InterruptState>>
  readonly subagents: Readonly<Record<string, SubagentState>>
  readonly files: Readonly<Record<string, FileState>>
  readonly evidence: readonly EvidenceAdded[]
  readonly gates: readonly GateDecided[]
  readonly errors: readonly ErrorRaised[]
  /** The sum over all messages and `usage_recorded` events. */
  readonly usage: Usage
  /** The number of events applied so far, including unknown ones. A stream can be resumed from this number. */
  readonly eventCount: number
  readonly unknownEvents: number
  /**
   * The positions of turns, messages and calls by id. When an id repeats, the index contains the latest
   * position.
   */
  readonly index: ThreadIndex
}

/** The positions of turns, messages and calls by id, so that no event has to search for them. */
export interface ThreadIndex {
  readonly turns: Readonly<Record<string, number>>
  readonly messages: Readonly<Record<string, readonly [turn: number, item: number]>>
  readonly calls: Readonly<Record<string, readonly [turn: number, call: number]>>
}

/** One turn of the live thread. */
export type TurnState = UserTurnState | AgentTurnState

/** One turn of a person: the messages, and the events that followed them. */
export interface UserTurnState {
  readonly kind: 'user'
  readonly turnId: string
  readonly startedAt: string
  readonly userId?: string
  readonly items: readonly TurnItem[]
}

/** One turn of an agent: its items in order, its calls, and the message that is being streamed. */
export interface AgentTurnState {
  readonly kind: 'agent'
  readonly turnId: string
  readonly agentId: string
  readonly startedAt: string
  readonly endedAt?: string
  readonly continues?: string
  readonly outcome: TurnOutcome | 'running'
  readonly reason?: string
  /** Messages, results and events in the order in which they arrived. */
  readonly items: readonly TurnItem[]
  readonly calls: readonly LiveToolCall[]
  /** The message that the model is streaming, as far as it has arrived. */
  readonly draft?: DraftState
}

/** One item of a turn. */
export type TurnItem = MessageItem | ResultItem | EventItem

/** A complete message of a turn. */
export interface MessageItem {
  readonly kind: 'message'
  readonly at: string
  readonly message: MessageJSON
  readonly isSilent?: boolean
  readonly isRemoved?: boolean
  readonly agentId?: string
  readonly modelName?: string
  readonly providerName?: string
  readonly providerResponseId?: string
  readonly finishReason?: string
  readonly usage?: Usage
  /** Whether people may rely on the answer, if a gate checks it. */
  readonly delivery?: DeliveryStatus
}

/**
 * The outcome of one call, stored once although it may arrive twice: from the tool executor and in a tool
 * result message.
 */
export interface ResultItem {
  readonly kind: 'result'
  readonly at: string
  readonly toolCallId: string
  readonly toolName: string
  readonly outcome: LoggedOutcome
  readonly result: unknown
}

/** An event that is shown at this place of the turn, unchanged. */
export interface EventItem {
  readonly kind: 'event'
  readonly event: ThreadEvent | UnknownThreadEvent
}

/** A message that is not complete yet, as far as the model has streamed it. */
export interface DraftState {
  readonly stepId: string
  readonly blocks: readonly DraftBlock[]
  /** Events that arrived while the model was streaming. They are placed after the complete message. */
  readonly events: readonly EventItem[]
}

/** One block of a draft: text, or the argument text of a call. */
export type DraftBlock =
  | { readonly type: 'text' | 'reasoning'; readonly id: string; readonly text: string }
  | {
      readonly type: 'tool_call'
      readonly id: string
      readonly toolName: string
      readonly text: string
    }

/** A tool call and its current state. */
export interface LiveToolCall {
  readonly toolCallId: string
  readonly toolName: string
  readonly arguments: unknown
  /** `requested` until the call runs; `waiting` while an interrupt is open; at the end the call's outcome. */
  readonly status: 'requested' | 'waiting' | 'running' | LoggedOutcome
  readonly startedAt?: string
  readonly endedAt?: string
  readonly durationMs?: number
  readonly result?: unknown
  /** The latest intermediate output, while the call runs. */
  readonly progress?: unknown
  readonly interruptId?: string
  readonly isHidden?: boolean
}

/** An interrupt: what a call waits for, and the answer once there is one. */
export interface InterruptState extends InterruptRecord {
  readonly turnId: string
  readonly openedAt: string
  readonly answer?: InterruptAnswer
  readonly answeredAt?: string
  readonly answeredBy?: string
}

/** A child thread as its parent sees it. */
export interface SubagentState extends Omit<SubagentCreated, 'type' | 'at'> {
  readonly createdAt: string
  readonly status: 'running' | 'idle' | 'awaiting_human' | 'completed' | 'failed' | 'terminated'
  readonly statusText?: string
  readonly endedAt?: string
  readonly result?: unknown
}

/** A file of the thread. */
export interface FileState {
  readonly path: string
  readonly mediaType: string
  readonly sizeBytes: number
  readonly writtenAt: string
  readonly hash?: string
}

/** The state before the first event. */
export const emptyFoldedThread: FoldedThread = {
  threadId: '',
  createdAt: '',
  updatedAt: '',
  metadata: {},
  agents: {},
  turns: [],
  status: 'idle',
  interrupts: {},
  subagents: {},
  files: {},
  evidence: [],
  gates: [],
  errors: [],
  usage: {},
  eventCount: 0,
  unknownEvents: 0,
  index: { turns: {}, messages: {}, calls: {} },
}
