import type { StopReason } from '@skein/ai'
import type { JsonObject, JsonValue, MessageJSON } from '@skein/base'
import type {
  AgentRegistered,
  InterruptAnswered,
  InterruptOpened,
  MessageAdded,
  StepStart,
  SubagentCreated,
  ThreadCreated,
  ThreadEvent,
  ToolExecutionStart,
  TurnStart,
  UsageRecorded,
} from '@skein/threads'
import type { Budget } from '../definitions/types.ts'
import type { FileStat, Side } from './thread-state.ts'
import type { ResolvedAgent } from '../definitions/resolved.ts'

/** The version of the events below. A fold reads this one and all before it; see `upcast.ts`. */
export const EVENT_VERSION = 1

interface EventBase<Type extends string> {
  readonly type: Type
  readonly at: string
}

/** The first event of every thread. */
export interface RuntimeThreadCreated extends ThreadCreated {
  readonly agent: string
  readonly version: number
  /** Arguments of a child, readable as `state.arguments`. */
  readonly arguments?: JsonObject
  /** How a child reports; absent for threads without parent. */
  readonly parent?: ParentLink
  /** Levels above. */
  readonly depth: number
  /** Limits of this thread, besides those of its agent. */
  readonly budget?: Budget
}

/** What a child knows about the parent that created it. */
export interface ParentLink {
  readonly threadId: string
  readonly relation: string
  readonly isBlocking: boolean
  readonly isResumable: boolean
  readonly communication: 'implicit' | 'explicit'
  /** The side of the child that the parent's messages go to. */
  readonly receives: Side
}

/** A message in the inbox. It becomes a `message_added` with the same `queueId` when it is taken. */
export interface MessageQueued extends EventBase<'message_queued'> {
  readonly queueId: string
  /** `user` speaks to side A, `assistant` to side B. */
  readonly role: 'user' | 'assistant'
  readonly message: MessageJSON
  readonly isSilent?: boolean
  readonly userId?: string
  readonly attachments?: readonly string[]
  readonly subagentId?: string
  readonly metadata?: JsonObject
  /** Whether a thread that its user stopped goes on with it. Messages of children do not. */
  readonly resumes?: boolean
  /** The interrupt of the parent that waits for the session which takes this message. */
  readonly parentInterruptId?: string
}

/** A message that waited was withdrawn. */
export interface MessageUnqueued extends EventBase<'message_unqueued'> {
  readonly queueId: string
}

/** A message was added to the history. */
export interface RuntimeMessageAdded extends MessageAdded {
  readonly side: Side
  readonly queueId?: string
  readonly stepId?: string
  readonly attachments?: readonly string[]
  readonly subagentId?: string
  readonly metadata?: JsonObject
  readonly costUsd?: number
}

/** An autonomous stretch begins: one turn with a person, many turns between two models. */
export interface SessionStart extends EventBase<'session_start'> {
  readonly sessionId: string
  readonly agent: string
  /** Interrupts of the parent that wait for it; those of messages come by themselves. */
  readonly waiters?: readonly string[]
}

/** A tool asked to end the session after its step. */
export interface SessionStopRequested extends EventBase<'session_stop_requested'> {
  readonly isFailure: boolean
  readonly message: string
  readonly attachments?: readonly string[]
}

/** How a session ends. */
export type SessionOutcome = 'completed' | 'failed' | 'stopped' | 'terminated'

/** A session ended. */
export interface SessionEnd extends EventBase<'session_end'> {
  readonly sessionId: string
  readonly outcome: SessionOutcome
  /** A word for programs: `session_stop`, `session_fail`, `response`, `max_side_steps`, … */
  readonly reason: string
  /** The result for the parent or the caller. */
  readonly message?: string
  readonly attachments?: readonly string[]
  /** Of a side with a declared output. */
  readonly data?: JsonValue
  /** The parent had ended: the result stays here. */
  readonly isUndelivered?: boolean
}

/** The agent of a side's turn, and which side it is. */
export interface RuntimeTurnStart extends TurnStart {
  readonly side: Side
}

/** A step began or is tried again. */
export interface RuntimeStepStart extends StepStart {
  readonly side: Side
  /** From 1; a higher one follows a failure or a crash. */
  readonly attempt: number
  readonly epoch: number
}

/** A model call failed; it is tried again at `retryAt`, or the session ends. */
export interface StepFailed extends EventBase<'step_failed'> {
  readonly turnId: string
  readonly stepId: string
  readonly attempt: number
  readonly code: string
  readonly message: string
  readonly retryAt?: string
}

/** A call is about to run: the intent, committed before the effect. */
export interface RuntimeToolExecutionStart extends ToolExecutionStart {
  readonly epoch: number
}

/** A call waits for a person, a client or a child. */
export interface RuntimeInterruptOpened extends InterruptOpened {
  /** ISO 8601; then it is answered with an error. */
  readonly expiresAt?: string
}

/** The answer that a call waited for. */
export interface RuntimeInterruptAnswered extends InterruptAnswered {
  /** The answer is the result of a child: when nobody waits for it any more, it is queued as a message. */
  readonly report?: ChildReport
}

/** A child's report as a message, for a parent whose call is over by the time it arrives. */
export interface ChildReport {
  readonly queueId: string
  readonly reference: string
  /** What the message says before the answer. */
  readonly opening: string
  readonly attachments?: readonly string[]
}

/** A child was created. */
export interface RuntimeSubagentCreated extends SubagentCreated {
  readonly relation: string
  readonly spawnGroupId?: string
  readonly parentCommunication: 'implicit' | 'explicit'
  readonly isImmediate?: boolean
}

/** A call that a crash cut off will run again, as if it had not started. */
export interface CallReset extends EventBase<'call_reset'> {
  readonly turnId: string
  readonly toolCallId: string
}

/** Children of a newly active prompt that start by themselves were created. */
export interface ImmediateDone extends EventBase<'immediate_done'> {
  readonly agent: string
}

/** The stop button. A running step is cut short; what it has said stays. */
export interface StopRequested extends EventBase<'stop_requested'> {
  readonly by?: string
  /** Waits for the running step. */
  readonly afterStep?: boolean
}

/** Go on after a stop, a failure or a limit. */
export interface ResumeRequested extends EventBase<'resume_requested'> {
  readonly by?: string
  readonly side?: Side
}

/** The thread was terminated; it takes no more messages. */
export interface ThreadTerminated extends EventBase<'thread_terminated'> {
  readonly by?: string
  /** Children are left alone. */
  readonly isDetached?: boolean
}

/** A value of the thread was set; null removes it. */
export interface ValueSet extends EventBase<'value_set'> {
  readonly key: string
  /** Null removes it. */
  readonly value: JsonValue | null
}

/** A variable of the thread was set; null removes it. */
export interface EnvSet extends EventBase<'env_set'> {
  readonly name: string
  readonly valueType: 'text' | 'secret'
  /** Null removes it. A secret is sealed: see `secrets/vault.ts`. */
  readonly value: string | null
  /** Came with the creation of this child; not inherited by its own children. */
  readonly isScoped?: boolean
}

/** Work was scheduled: once after a delay, or by a calendar. */
export interface EffectScheduled extends EventBase<'effect_scheduled'> {
  readonly effectId: string
  readonly name: string
  readonly args: JsonValue
  readonly runAt: string
  readonly cron?: string
  readonly key?: string
}

/** A scheduled effect is about to run. */
export interface EffectStarted extends EventBase<'effect_started'> {
  readonly effectId: string
  readonly attempt: number
  readonly epoch: number
}

/** A scheduled effect ran, failed or was removed; with `runAt` it runs again. */
export interface EffectEnded extends EventBase<'effect_ended'> {
  readonly effectId: string
  readonly outcome: 'done' | 'failed' | 'removed'
  readonly error?: string
  /** When it runs again: the next time of its calendar, or the retry. */
  readonly runAt?: string
}

/** A child could not be created: variables are missing (Standard Agents §7.8). */
export interface VariablesRequested extends EventBase<'variables_requested'> {
  readonly requestId: string
  readonly required: readonly string[]
  readonly missing: readonly string[]
  readonly expiresAt: string
  /** The original call, to be made again word for word. */
  readonly relation: string
  readonly toolName: string
  readonly arguments: JsonObject
  /** The files of the call as they were then. */
  readonly attachments?: readonly FileStat[]
  /** Nobody called: the child was to start by itself. */
  readonly isImmediate?: boolean
}

/** A person gave the variables that a child needs. */
export interface VariablesProvided extends EventBase<'variables_provided'> {
  readonly requestId: string
  readonly by?: string
  /** Sealed when the variable is a secret. */
  readonly values: Readonly<Record<string, { valueType: 'text' | 'secret'; value: string }>>
}

/** The deferred child of a request was created, or could not be. */
export interface VariablesSettled extends EventBase<'variables_settled'> {
  readonly requestId: string
  readonly reference?: string
  readonly error?: string
}

/** Messages up to and with `upTo` are replaced by a summary in what models see. */
export interface ContextCompacted extends EventBase<'context_compacted'> {
  readonly side: Side
  readonly upTo: string
  readonly summary: string
}

/** One request to a model, as a difference to the one before it of the same side. */
export interface ModelRequested extends EventBase<'model_requested'> {
  readonly logId: string
  readonly stepId: string
  readonly turnId: string
  readonly attempt: number
  readonly side: Side
  readonly prompt: string
  readonly provider: string
  readonly model: string
  /** SHA-256 of a blob with the system text, the tools and the parameters. */
  readonly frame: string
  /** The request before, and how many of its messages this one begins with. */
  readonly previous?: { readonly logId: string; readonly keeps: number }
  /** The rest: ids of stored messages, or messages as they were sent. */
  readonly adds: readonly (string | JsonObject)[]
}

/** What came of a model request. */
export interface ModelAnswered extends EventBase<'model_answered'> {
  readonly logId: string
  readonly durationMs: number
  readonly firstTokenMs?: number
  readonly finishReason?: string
  readonly messageId?: string
  readonly error?: { readonly code: string; readonly message: string }
  readonly usage?: JsonObject
  readonly costUsd?: number
}

/**
 * One inference of a side that is an `agent()`. The strategy of such a side is run again from the start
 * of its turn whenever a drain goes on with the thread; it is then given the answers of these events, in
 * place of the model's, until it asks something that the log does not have. Programs that do not know
 * this event pass over it, so it needs no new version of the log.
 */
export interface InferenceRecorded extends EventBase<'inference_recorded'> {
  readonly turnId: string
  readonly stepId: string
  readonly side: Side
  /** SHA-256 of what the strategy asked: a run that asks something else has diverged. */
  readonly request: string
  /** How many messages the thread had when the run began. */
  readonly history: number
  /** The answer where it is part of the conversation: a message that is added in the same commit. */
  readonly messageId?: string
  /** The answer where it is not, e.g. the reasoning of `react()` and the plan of `plan()`. */
  readonly message?: MessageJSON
  readonly stopReason: StopReason
  /** A `TokenUsage` of `@skein/ai`, without the vendor's own numbers. */
  readonly usage: JsonObject
  readonly costUsd?: number
}

/** The contents of the thread were erased; only its skeleton is left. */
export interface ThreadErased extends EventBase<'thread_erased'> {
  readonly by?: string
  readonly eventCount: number
}

/** Tokens that no message of the thread stands for: of failed requests, summaries and the like. */
export interface RuntimeUsageRecorded extends UsageRecorded {
  readonly costUsd?: number
}

/** Events of the runtime beyond those of `@skein/threads`. */
export type RuntimeOnlyEvent =
  | MessageQueued
  | MessageUnqueued
  | SessionStart
  | SessionEnd
  | SessionStopRequested
  | StepFailed
  | CallReset
  | ImmediateDone
  | StopRequested
  | ResumeRequested
  | ThreadTerminated
  | ValueSet
  | EnvSet
  | EffectScheduled
  | EffectStarted
  | EffectEnded
  | VariablesRequested
  | VariablesProvided
  | VariablesSettled
  | ContextCompacted
  | ModelRequested
  | ModelAnswered
  | InferenceRecorded
  | ThreadErased

type Widened =
  | RuntimeThreadCreated
  | RuntimeMessageAdded
  | RuntimeTurnStart
  | RuntimeStepStart
  | RuntimeToolExecutionStart
  | RuntimeInterruptOpened
  | RuntimeInterruptAnswered
  | RuntimeSubagentCreated
  | RuntimeUsageRecorded

/** Everything that can stand in the log of a thread: `@skein/threads`' events, some with more fields, and ours. */
export type RuntimeEvent =
  Exclude<ThreadEvent, { type: Widened['type'] }> | Widened | RuntimeOnlyEvent

/** An event with its place in the log, from 1. */
export interface StoredEvent {
  readonly seq: number
  readonly event: RuntimeEvent
}

/** Announces the sides of an agent in the log, as turns refer to them: `<agent>/<side>`. */
export function agentRegistrations({ name, a, b }: ResolvedAgent, at: string): AgentRegistered[] {
  return [a, ...(b ? [b] : [])].map(({ side, label }) => ({
    type: 'agent_registered',
    at,
    agent: { agent_id: `${name}/${side}`, agent_name: label || name, created_at: at },
  }))
}
