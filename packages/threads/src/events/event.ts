/**
 * The events of a live thread. A thread is an append-only list of events; its state is computed from them in
 * order (`reduceThread`), and the ThreadProtocol document, the UI stream and the log file are exports of the
 * same list. Every event is plain JSON.
 */
import type { JsonObject, MessageJSON } from '@skein/base'
import type { AgentConfig, Usage } from '../document/thread.ts'

/**
 * The fields of every event. `at` is ISO 8601; events are ordered by their position in the list, never by
 * their times.
 */
interface EventBase<Type extends string> {
  readonly type: Type
  readonly at: string
}

/**
 * How a tool call ended. `retry` asks the model to try again; `unknown` means that the outcome was lost in a
 * crash.
 */
export type LoggedOutcome = 'success' | 'failed' | 'denied' | 'interrupted' | 'retry' | 'unknown'

/** How an agent's turn ended. A `parked` turn waits for something, and a new turn continues it. */
export type TurnOutcome = 'completed' | 'parked' | 'interrupted' | 'failed'

/**
 * Whether the people of a thread may rely on an agent's answer, if a gate checks the answers: `pending` before the gate
 * has decided, `refused` if the answer will never be delivered, and `delivered`. Answers that no gate checks have no
 * such status.
 */
export type DeliveryStatus = 'pending' | 'refused' | 'delivered'

/** The first event of a thread. */
export interface ThreadCreated extends EventBase<'thread_created'> {
  readonly threadId: string
  readonly title?: string
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly parentThreadId?: string
}

/** Changes title or metadata. Metadata is merged key by key; `null` removes a key. */
export interface ThreadUpdated extends EventBase<'thread_updated'> {
  readonly title?: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** Adds an agent to the registry, or replaces its entry. */
export interface AgentRegistered extends EventBase<'agent_registered'> {
  readonly agent: AgentConfig
}

/**
 * Adds a complete UPP message, unchanged. A user message with a new `turnId` begins a user turn; with the id
 * of an existing turn, it becomes a message of that turn. An assistant message replaces the content that was
 * streamed for it.
 */
export interface MessageAdded extends EventBase<'message_added'> {
  readonly turnId: string
  readonly message: MessageJSON
  readonly agentId?: string
  readonly userId?: string
  readonly isSilent?: boolean
  readonly modelName?: string
  readonly providerName?: string
  readonly providerResponseId?: string
  readonly finishReason?: string
  readonly usage?: Usage
  /** For tool results: how each call ended, when `isError` alone is not precise enough. */
  readonly outcomes?: Readonly<Record<string, LoggedOutcome>>
  /** The status of an agent's answer when it was added; `delivery_changed` changes it. */
  readonly delivery?: DeliveryStatus
}

/** Replaces a message, for example after an edit by a person. */
export interface MessageUpdated extends EventBase<'message_updated'> {
  readonly messageId: string
  readonly message: MessageJSON
}

/** Removes a message from the history; the message stays in the log. */
export interface MessageRemoved extends EventBase<'message_removed'> {
  readonly messageId: string
}

/** A gate has decided about answers, or the session ended before it could: their status changes for good. */
export interface DeliveryChanged extends EventBase<'delivery_changed'> {
  readonly messageIds: readonly string[]
  readonly delivery: Exclude<DeliveryStatus, 'pending'>
  /** Why the answers are refused. */
  readonly reason?: string
}

/** A side of an agent (A or B, each with its own model) begins its turn; `agentId` is `<agent>/<side>`. */
export interface TurnStart extends EventBase<'turn_start'> {
  readonly turnId: string
  readonly agentId: string
  /** The `parked` (waiting) turn that this turn continues; a UI shows both turns as one message. */
  readonly continues?: string
}

/** A side of an agent (A or B) has ended its turn. */
export interface TurnEnd extends EventBase<'turn_end'> {
  readonly turnId: string
  readonly outcome: TurnOutcome
  readonly reason?: string
}

/** One model call begins. */
export interface StepStart extends EventBase<'step_start'> {
  readonly turnId: string
  readonly stepId: string
}

/** One model call has ended. */
export interface StepEnd extends EventBase<'step_end'> {
  readonly turnId: string
  readonly stepId: string
}

/** A model call failed and is tried again; the content that the failed call streamed is discarded. */
export interface StepReset extends EventBase<'step_reset'> {
  readonly turnId: string
  readonly stepId: string
  readonly reason?: string
}

/** A piece of streamed text. */
export interface TextDelta extends EventBase<'text_delta'> {
  readonly turnId: string
  readonly blockId: string
  readonly text: string
  /** Set if a gate will check the answer. */
  readonly delivery?: 'pending'
}

/** A piece of streamed thinking. */
export interface ReasoningDelta extends EventBase<'reasoning_delta'> {
  readonly turnId: string
  readonly blockId: string
  readonly text: string
  readonly delivery?: 'pending'
}

/** A piece of the streamed argument text of a call. */
export interface ToolCallDelta extends EventBase<'tool_call_delta'> {
  readonly turnId: string
  readonly toolCallId: string
  readonly toolName: string
  readonly argumentsText: string
}

/** A tool begins to run. */
export interface ToolExecutionStart extends EventBase<'tool_execution_start'> {
  readonly turnId: string
  readonly toolCallId: string
  readonly toolName: string
  readonly arguments?: unknown
}

/**
 * An intermediate output of a running tool. It is shown to people who watch the run, and is not part of the
 * history.
 */
export interface ToolExecutionProgress extends EventBase<'tool_execution_progress'> {
  readonly turnId: string
  readonly toolCallId: string
  readonly output: unknown
}

/** A tool call has ended with an outcome. */
export interface ToolExecutionEnd extends EventBase<'tool_execution_end'> {
  readonly turnId: string
  readonly toolCallId: string
  readonly toolName: string
  readonly outcome: LoggedOutcome
  readonly result: unknown
  readonly durationMs?: number
  /** Who found out what became of the call, if its tool did not report it. */
  readonly settledBy?: 'probe' | 'person'
}

/**
 * A call has ended although its outcome was not known any more: the log says that it is unknown, or another process
 * has continued the thread. The outcome in the log stays; this event says what really happened.
 */
export interface LateResult extends EventBase<'late_result'> {
  readonly turnId: string
  /** The call; or the effect, if `effectId` is set. */
  readonly toolCallId: string
  readonly toolName: string
  readonly outcome: 'success' | 'failed'
  readonly result: unknown
  readonly effectId?: string
}

/** A hook hid a call from the model; the call stays in the log. */
export interface ToolCallHidden extends EventBase<'tool_call_hidden'> {
  readonly toolCallId: string
}

/** A call that waits for a person, a child or a timer. */
export interface InterruptRecord {
  readonly id: string
  readonly toolCallId: string
  readonly path?: readonly string[]
  /** `in_doubt`: the call was cut off, and a person has to find out whether it had its effect. */
  readonly kind: 'approval' | 'input' | 'in_doubt' | 'child' | 'timer'
  readonly request?: unknown
}

/**
 * The answer to an interrupt. A call is never changed: to edit its arguments, deny the call and add a new
 * call.
 */
export type InterruptAnswer =
  | { readonly type: 'approve'; readonly token?: unknown; readonly reason?: string }
  | { readonly type: 'deny'; readonly reason?: string }
  | { readonly type: 'result'; readonly value: unknown }
  | { readonly type: 'error'; readonly message: string }

/** A call begins to wait for a person, a child or a timer. */
export interface InterruptOpened extends EventBase<'interrupt_opened'> {
  readonly turnId: string
  readonly interrupt: InterruptRecord
  /** The arguments with which the call will run, if its tool has made others of those that the model sent. */
  readonly parsed?: { readonly arguments: JsonObject }
}

/** An interrupt was answered. */
export interface InterruptAnswered extends EventBase<'interrupt_answered'> {
  readonly interruptId: string
  readonly answer: InterruptAnswer
  readonly answeredBy?: string
}

/** A child thread was created. */
export interface SubagentCreated extends EventBase<'subagent_created'> {
  /** The child's thread id. */
  readonly reference: string
  readonly name: string
  readonly turnId?: string
  readonly toolCallId?: string
  readonly title?: string
  readonly description?: string
  readonly threadName?: string
  readonly isBlocking?: boolean
  readonly isResumable?: boolean
}

/**
 * A child thread's state changed. The lifecycle (`status`) and the child's own text (`statusText`) are
 * separate fields, so that the text "terminated" of a child is not mistaken for the end of that child.
 */
export interface SubagentUpdated extends EventBase<'subagent_updated'> {
  readonly reference: string
  readonly status: 'running' | 'idle' | 'awaiting_human'
  readonly statusText?: string
}

/** A child thread has ended. */
export interface SubagentEnded extends EventBase<'subagent_ended'> {
  readonly reference: string
  readonly outcome: 'completed' | 'failed' | 'terminated'
  readonly result?: unknown
}

/** One agent hands the conversation over to another. */
export interface AgentHandoff extends EventBase<'agent_handoff'> {
  readonly turnId: string
  readonly fromAgentId: string
  readonly toAgentId: string
  readonly reason?: string
}

/** A file of the thread was written; its bytes are stored elsewhere. */
export interface FileWritten extends EventBase<'file_written'> {
  readonly path: string
  readonly mediaType: string
  readonly sizeBytes: number
  readonly hash?: string
  readonly turnId?: string
  readonly toolCallId?: string
}

/** A file of the thread was removed. */
export interface FileRemoved extends EventBase<'file_removed'> {
  readonly path: string
  readonly turnId?: string
}

/** A page (`url`) or a document (`mediaType`, `title`) that an answer cites. */
export interface SourceAdded extends EventBase<'source_added'> {
  readonly sourceId: string
  readonly turnId?: string
  readonly url?: string
  readonly mediaType?: string
  readonly title?: string
  readonly filename?: string
}

/** A fact that a governance check may base its decision on. */
export interface EvidenceAdded extends EventBase<'evidence_added'> {
  readonly evidenceId: string
  readonly kind: string
  readonly turnId?: string
  readonly toolCallId?: string
  readonly summary?: string
  readonly data?: unknown
}

/** A governance check (a gate) decided whether a call may run or an answer may be delivered. */
export interface GateDecided extends EventBase<'gate_decided'> {
  readonly gate: string
  readonly decision: 'allow' | 'deny' | 'review' | 'delivered' | 'repair' | 'fail_safe'
  readonly turnId?: string
  readonly toolCallId?: string
  readonly reasonCodes?: readonly string[]
}

/** The status of the thread changed. */
export interface StatusChanged extends EventBase<'status_changed'> {
  readonly status: ThreadStatus
  readonly text?: string
  /** Whether the thread waits for a person. Its parent's list of subagents shows this. */
  readonly awaitsPerson?: boolean
}

/** The status of a thread. */
export type ThreadStatus =
  | 'idle'
  | 'running'
  | 'waiting'
  /** It was asked to stop, and a call that had started may still end. */
  | 'stopping'
  | 'stopped'
  | 'failed'
  | 'terminated'

/** Usage that belongs to no message, such as an embedding or a model call of a governance check. */
export interface UsageRecorded extends EventBase<'usage_recorded'> {
  readonly usage: Usage
  readonly turnId?: string
  readonly agentId?: string
}

/** An error that people should see. */
export interface ErrorRaised extends EventBase<'error_raised'> {
  readonly code: string
  readonly message: string
  readonly hint?: string
  readonly turnId?: string
  readonly toolCallId?: string
}

/**
 * Application data, sent as `data-NAME` in a UI stream. An event with the same `id` replaces the earlier one;
 * transient data is shown but not stored.
 */
export interface CustomEvent extends EventBase<'custom_event'> {
  readonly name: string
  readonly data: unknown
  readonly id?: string
  readonly turnId?: string
  readonly isTransient?: boolean
}

/** Any event of a thread. */
export type ThreadEvent =
  | ThreadCreated
  | ThreadUpdated
  | AgentRegistered
  | MessageAdded
  | MessageUpdated
  | MessageRemoved
  | DeliveryChanged
  | TurnStart
  | TurnEnd
  | StepStart
  | StepEnd
  | StepReset
  | TextDelta
  | ReasoningDelta
  | ToolCallDelta
  | ToolExecutionStart
  | ToolExecutionProgress
  | ToolExecutionEnd
  | LateResult
  | ToolCallHidden
  | InterruptOpened
  | InterruptAnswered
  | SubagentCreated
  | SubagentUpdated
  | SubagentEnded
  | AgentHandoff
  | FileWritten
  | FileRemoved
  | SourceAdded
  | EvidenceAdded
  | GateDecided
  | StatusChanged
  | UsageRecorded
  | ErrorRaised
  | CustomEvent

/**
 * An event of a later version or of another package. The state counts it and keeps it as an item of its turn.
 */
export interface UnknownThreadEvent {
  readonly type: string
  readonly at: string
  readonly [field: string]: unknown
}

/**
 * Every event type of this version, and whether a log stores it. A new event type does not compile until it
 * has an entry here. A `custom_event` is not stored if its `isTransient` is true.
 */
const KNOWN: Readonly<Record<ThreadEvent['type'], 'kept' | 'ephemeral'>> = {
  thread_created: 'kept',
  thread_updated: 'kept',
  agent_registered: 'kept',
  message_added: 'kept',
  message_updated: 'kept',
  message_removed: 'kept',
  delivery_changed: 'kept',
  turn_start: 'kept',
  turn_end: 'kept',
  step_start: 'kept',
  step_end: 'kept',
  step_reset: 'kept',
  text_delta: 'ephemeral',
  reasoning_delta: 'ephemeral',
  tool_call_delta: 'ephemeral',
  tool_execution_start: 'kept',
  tool_execution_progress: 'ephemeral',
  tool_execution_end: 'kept',
  late_result: 'kept',
  tool_call_hidden: 'kept',
  interrupt_opened: 'kept',
  interrupt_answered: 'kept',
  subagent_created: 'kept',
  subagent_updated: 'kept',
  subagent_ended: 'kept',
  agent_handoff: 'kept',
  file_written: 'kept',
  file_removed: 'kept',
  source_added: 'kept',
  evidence_added: 'kept',
  gate_decided: 'kept',
  status_changed: 'kept',
  usage_recorded: 'kept',
  error_raised: 'kept',
  custom_event: 'kept',
}

/** True for the event types of this version. */
export function isThreadEvent(event: { readonly type: string }): event is ThreadEvent {
  return Object.hasOwn(KNOWN, event.type)
}

/** True for events that matter only to someone who watches live; they may be left out of a stored log. */
export function isEphemeralEvent(event: ThreadEvent | UnknownThreadEvent): boolean {
  if (!isThreadEvent(event)) return false
  if (event.type === 'custom_event') return event.isTransient === true
  return KNOWN[event.type] === 'ephemeral'
}
