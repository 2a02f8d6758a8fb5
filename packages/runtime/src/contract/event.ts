import type { StopReason } from '@skein/ai'
import type { JsonObject, JsonValue, MessageJSON, RecordedArguments } from '@skein/base'
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
import type { UndoStatus } from '@skein/governance'
import type { Budget } from '../definitions/agent-definition.ts'
import type { FileStat, Side } from './thread-state.ts'
import type { ResolvedAgent } from '../definitions/resolved.ts'

/** The version of the events below. Logs of this version and of all earlier ones can be read; see `upcast.ts`. */
export const EVENT_VERSION = 2

interface EventBase<Type extends string> {
  readonly type: Type
  readonly at: string
}

/** The first event of every thread. */
export interface RuntimeThreadCreated extends ThreadCreated {
  readonly agent: string
  readonly version: number
  /** The arguments with which a child was created, readable as `state.arguments`. */
  readonly arguments?: JsonObject
  /** How a child reports to its parent; absent for threads without a parent. */
  readonly parent?: ParentLink
  /** The number of ancestor threads. */
  readonly depth: number
  /** Limits of this thread; they replace the limits of its agent. */
  readonly budget?: Budget
}

/** The data that a child stores about the parent that created it. */
export interface ParentLink {
  readonly threadId: string
  readonly relation: string
  /** Whether a call or the first step of the parent waits for the child's first result. */
  readonly isBlocking: boolean
  readonly isResumable: boolean
  readonly communication: 'implicit' | 'explicit'
  /** The side of the child's conversation that gets the parent's messages. */
  readonly receives: Side
}

/**
 * A message was put into the queue. When a side takes it from the queue, a `message_added` event with the same
 * `queueId` is written.
 */
export interface MessageQueued extends EventBase<'message_queued'> {
  readonly queueId: string
  /** Who gets the message: for `user` the agent (side A), for `assistant` the person or second agent (side B). */
  readonly role: 'user' | 'assistant'
  readonly message: MessageJSON
  readonly isSilent?: boolean
  readonly userId?: string
  readonly attachments?: readonly string[]
  readonly subagentId?: string
  readonly metadata?: JsonObject
  /** Whether the message continues a thread that its user has stopped. Messages of children do not. */
  readonly resumes?: boolean
  /** The id of the parent's waiting call ("interrupt") that is answered when the session with this message ends. */
  readonly parentInterruptId?: string
  /** Of a message from the parent: the sessions above that it works for, the outermost first. */
  readonly callers?: readonly SessionName[]
  /**
   * Set when the message arrived during a session and ends the running turn early. After `restart`, models are
   * no longer shown what was said since the last answer.
   */
  readonly ifBusy?: 'cut' | 'restart'
  /**
   * The span that caused the message, as a `traceparent` (W3C Trace Context). The session that takes the
   * message belongs to its trace.
   */
  readonly trace?: string
}

/** A session of a thread. */
export interface SessionName {
  readonly threadId: string
  readonly sessionId: string
}

/** A queued message was withdrawn. */
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

/** A session began. It has one turn if an agent talks with a person, and many if two agents talk with each other. */
export interface SessionStart extends EventBase<'session_start'> {
  readonly sessionId: string
  readonly agent: string
  /** The hash of the definitions with which the session began (`ResolvedAgent.hash`); absent in older logs. */
  readonly definitions?: string
  /**
   * Ids of the parent's waiting calls ("interrupts") that get the result of this session. Calls that wait for queued
   * messages need not be listed; they are added when the messages are taken from the queue.
   */
  readonly waiters?: readonly string[]
  /** The first span of the session, as a `traceparent`; later spans of the session are its children. */
  readonly trace?: string
}

/** A tool asked to end the session after its step. */
export interface SessionStopRequested extends EventBase<'session_stop_requested'> {
  readonly isFailure: boolean
  readonly message: string
  readonly attachments?: readonly string[]
}

/** The ways in which a session can end. */
export type SessionOutcome = 'completed' | 'failed' | 'stopped' | 'terminated'

/** A session ended. */
export interface SessionEnd extends EventBase<'session_end'> {
  readonly sessionId: string
  readonly outcome: SessionOutcome
  /** A machine-readable reason: `session_stop`, `session_fail`, `response`, `max_side_steps`, … */
  readonly reason: string
  /** The result for the parent or the caller. */
  readonly message?: string
  /** What to do about a failure. */
  readonly hint?: string
  readonly attachments?: readonly string[]
  /** The parsed answer of a side whose prompt declares an output. */
  readonly data?: JsonValue
  /** True when the result was not delivered because the parent had ended. */
  readonly isUndelivered?: boolean
  /** Why the runtime gave up the thread, if it did (reason `drain_failed`). */
  readonly cause?: FailureCause
}

/**
 * A session fails, and subagents still work for it. They were asked to stop in the same commit. When they have, the
 * writes of all of them are undone, and the session ends with this outcome.
 */
export interface SessionFailing extends EventBase<'session_failing'> {
  readonly sessionId: string
  readonly outcome: Exclude<SessionOutcome, 'completed'>
  readonly reason: string
  readonly message: string
  readonly hint?: string
  readonly attachments?: readonly string[]
  readonly data?: JsonValue
  /** The threads that have to stop, with the last event of each before it was asked to. */
  readonly below: readonly { readonly threadId: string; readonly seq: number }[]
}

/** A write of a session that failed: what became of it. In the log of the thread that made it. */
export interface WriteUndone extends EventBase<'write_undone'> {
  /** The request of the audit log, and the call in it. */
  readonly requestId: string
  readonly call: string
  readonly toolName: string
  readonly status: UndoStatus
  readonly error?: string
}

/** A person's decision about a write that was left when its session failed was carried out. */
export interface UndoDecided extends EventBase<'undo_decided'> {
  readonly interruptId: string
  readonly status: UndoStatus | 'closed'
  readonly error?: string
}

/** A write that was left when its session failed. A person is asked about it. */
export interface WriteLeft {
  /** The thread that made the write. */
  readonly threadId: string
  readonly requestId: string
  readonly call: string
  readonly toolName: string
  readonly arguments: JsonValue
  readonly status: UndoStatus
}

/** The last error of a thread that failed, or the death of the process that worked on it. */
export interface FailureCause {
  readonly code?: string
  readonly message: string
  readonly hint?: string
  /** The first lines of the stack, with the names of files but not their folders. */
  readonly stack?: string
}

/** Something went wrong. */
export interface RuntimeErrorRaised extends Extract<ThreadEvent, { type: 'error_raised' }> {
  readonly cause?: FailureCause
}

/** A call ended. `cause` is what the tool threw; only operators see it (`threads.failures`). */
export interface RuntimeToolExecutionEnd extends Extract<
  ThreadEvent,
  { type: 'tool_execution_end' }
> {
  readonly cause?: FailureCause
}

/** A turn began; `side` is the side whose turn it is. */
export interface RuntimeTurnStart extends TurnStart {
  readonly side: Side
}

/** A step began or is tried again. */
export interface RuntimeStepStart extends StepStart {
  readonly side: Side
  /** The number of the attempt, from 1; it increases after a failure or a crash. */
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
  readonly hint?: string
  readonly retryAt?: string
}

/** A call is about to run. This event, the intent, is committed before the tool can have a side effect. */
export interface RuntimeToolExecutionStart extends ToolExecutionStart {
  readonly epoch: number
  /**
   * The hash of the schema that has made `arguments` of what the model sent, which is in the message. Undefined for
   * a tool that parses nothing, and in older logs, whose `arguments` are those that the model sent.
   */
  readonly schema?: string
}

/** A call waits for a person, a client or a child; or an effect waits for a person. */
export interface RuntimeInterruptOpened extends InterruptOpened {
  /** The effect that waits. It has no call: `turnId` is empty, and `toolCallId` is the id of the effect. */
  readonly effectId?: string
  /** The write that the question is about, if its session has failed. No call waits for the answer. */
  readonly write?: WriteLeft
  /** The parsed arguments of the call, with which it runs after an approval. Undefined in older logs. */
  readonly parsed?: RecordedArguments
  /** When the interrupt expires (ISO 8601); it is then answered with an error. */
  readonly expiresAt?: string
}

/** A call that waited got its answer. */
export interface RuntimeInterruptAnswered extends InterruptAnswered {
  /**
   * Set when the answer is the result of a child. If no call waits for the result any more, it is queued as a
   * message.
   */
  readonly report?: ChildReport
  /** The files of the child's report, as paths of this thread. */
  readonly attachments?: readonly string[]
}

/** A child's report in the form of a message, for a parent whose call has ended before the report arrives. */
export interface ChildReport {
  readonly queueId: string
  readonly reference: string
  /** The text that precedes the answer in the message. */
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

/** A call that was interrupted by a crash will run again, as if it had not started. */
export interface CallReset extends EventBase<'call_reset'> {
  readonly turnId: string
  readonly toolCallId: string
}

/**
 * A person approved a call with other arguments. The call itself is denied, and another call takes its place
 * in the message (see the `message_updated` event before this one).
 */
export interface CallChanged extends EventBase<'call_changed'> {
  readonly turnId: string
  /** The call that is denied. */
  readonly toolCallId: string
  /** The call that runs instead. */
  readonly changedTo: string
  /** What the tool has made of the person's arguments, with which the new call runs. */
  readonly parsed?: RecordedArguments
  readonly by?: string
}

/**
 * A person allowed all calls of a tool in this thread until a time. Older programs ignore this event and
 * `grant_revoked`, because they do not know them: they ask a person about every call.
 */
export interface GrantMade extends EventBase<'grant_made'> {
  /** Also the id of the signed text, by which the audit log names each use of the grant. */
  readonly grantId: string
  readonly tool: string
  /** The highest risk of the calls that the grant allows. */
  readonly risk: 'write_low_risk' | 'write_high_risk'
  readonly by: string
  readonly expiresAt: string
  readonly reason?: string
  /** The signed text. Only this text is verified; the other members are copies for people and for look-ups. */
  readonly grant: string
}

/** A grant was taken back before its end. */
export interface GrantRevoked extends EventBase<'grant_revoked'> {
  readonly grantId: string
  readonly by: string
}

/** The children that start by themselves were created for the agent. */
export interface ImmediateDone extends EventBase<'immediate_done'> {
  readonly agent: string
}

/** A user pressed stop. A running step is ended early; the text it has produced is kept. */
export interface StopRequested extends EventBase<'stop_requested'> {
  readonly by?: string
  /** Whether the running step may finish first. */
  readonly afterStep?: boolean
  /** Whether a session above has failed, which undoes the writes of this one together with its own. */
  readonly leavesWrites?: boolean
}

/**
 * A message cut the running turn (see `MessageQueued.ifBusy`). The turn that answers the message begins in the
 * same commit and in the same session.
 */
export interface TurnCut extends EventBase<'turn_cut'> {
  readonly turnId: string
  /** After `restart`: the ids of the messages that models are not shown any more. The log keeps them. */
  readonly dropped?: readonly string[]
  /** A dropped message of which models see a note ("taken back"), because they still see the calls it had started. */
  readonly noted?: string
}

/** A user asked to continue after a stop, a failure or a limit. */
export interface ResumeRequested extends EventBase<'resume_requested'> {
  readonly by?: string
  readonly side?: Side
}

/** The thread was terminated; it accepts no more messages. */
export interface ThreadTerminated extends EventBase<'thread_terminated'> {
  readonly by?: string
  /** Whether the children keep running. */
  readonly isDetached?: boolean
  /** Whether the thread was a child that is not resumable and has reported its result. */
  readonly hasReported?: boolean
}

/** A value of the thread was set; null removes it. */
export interface ValueSet extends EventBase<'value_set'> {
  readonly key: string
  /** The new value; null removes the value. */
  readonly value: JsonValue | null
}

/** A variable of the thread was set; null removes it. */
export interface EnvSet extends EventBase<'env_set'> {
  readonly name: string
  readonly valueType: 'text' | 'secret'
  /** Null removes the variable. A secret is encrypted: see `secrets/vault.ts`. */
  readonly value: string | null
  /**
   * Whether the variable was set for this child alone when it was created; its own children do not inherit
   * it.
   */
  readonly isScoped?: boolean
}

/** Work for later (an effect) was scheduled: once after a delay, or repeatedly by a cron expression. */
export interface EffectScheduled extends EventBase<'effect_scheduled'> {
  readonly effectId: string
  readonly name: string
  readonly args: JsonValue
  readonly runAt: string
  readonly cron?: string
  readonly timeZone?: string
  readonly key?: string
}

/** An effect is about to run. This event, the intent, is committed before the effect runs. */
export interface EffectStarted extends EventBase<'effect_started'> {
  readonly effectId: string
  /** The number of the attempt within one run, from 1; an attempt that a crash cut off counts. */
  readonly attempt: number
  readonly epoch: number
}

/**
 * An effect ran, failed or was removed; with `runAt` it runs again. `unknown`: the process died while the effect ran,
 * and it is not known whether it had its effect.
 */
export interface EffectEnded extends EventBase<'effect_ended'> {
  readonly effectId: string
  readonly outcome: 'done' | 'failed' | 'removed' | 'unknown'
  readonly error?: string
  /** When the effect runs again: the next time of its cron expression, or the retry. */
  readonly runAt?: string
  /** Whether `runAt` is another attempt of the same run. */
  readonly isRetry?: boolean
  /** Who found out that the effect had happened; `result`: it reported so itself, but late. */
  readonly settledBy?: 'probe' | 'person' | 'result'
}

/** A child could not be created: variables are missing (Standard Agents §7.8). */
export interface VariablesRequested extends EventBase<'variables_requested'> {
  readonly requestId: string
  readonly required: readonly string[]
  readonly missing: readonly string[]
  readonly expiresAt: string
  /**
   * The relation that the original call named, i.e. which kind of child. Once the variables are provided, the child
   * is created with the arguments of that call.
   */
  readonly relation: string
  /** The agent and the side that need the child; undefined in logs of older versions. */
  readonly agent?: string
  readonly side?: Side
  readonly toolName: string
  /** The original call; undefined for a child that was to start by itself, and in logs of older versions. */
  readonly toolCallId?: string
  readonly arguments: JsonObject
  /** The files of the call as they were when the call was made. */
  readonly attachments?: readonly FileStat[]
  /** Whether the child was to start by itself, without a call. */
  readonly isImmediate?: boolean
}

/** A person provided the variables that a child needs. */
export interface VariablesProvided extends EventBase<'variables_provided'> {
  readonly requestId: string
  readonly by?: string
  /** Encrypted when the variable is a secret. */
  readonly values: Readonly<Record<string, { valueType: 'text' | 'secret'; value: string }>>
}

/** The child of a request for variables was created, or its creation failed. */
export interface VariablesSettled extends EventBase<'variables_settled'> {
  readonly requestId: string
  readonly reference?: string
  readonly error?: string
}

/** The messages up to and including `upTo` are replaced by a summary when the history is sent to a model. */
export interface ContextCompacted extends EventBase<'context_compacted'> {
  readonly side: Side
  readonly upTo: string
  readonly summary: string
}

/** One request to a model, stored as a difference to the previous request of the same side. */
export interface ModelRequested extends EventBase<'model_requested'> {
  readonly logId: string
  readonly stepId: string
  readonly turnId: string
  readonly attempt: number
  readonly side: Side
  readonly prompt: string
  /** The call that made the request, where a prompt is used as a tool; absent for an agent's own requests. */
  readonly toolCallId?: string
  readonly provider: string
  readonly model: string
  /** SHA-256 of a blob with the system text, the tools and the parameters. */
  readonly frame: string
  /** The previous request, and how many of its first messages this request repeats. */
  readonly previous?: { readonly logId: string; readonly keeps: number }
  /** The messages after the repeated ones: ids of stored messages, or messages as they were sent. */
  readonly adds: readonly (string | JsonObject)[]
}

/** The answer or the failure of a model request. */
export interface ModelAnswered extends EventBase<'model_answered'> {
  readonly logId: string
  /** The call of a prompt that is used as a tool. Its tokens are counted here, because the call adds no message. */
  readonly toolCallId?: string
  readonly durationMs: number
  readonly firstTokenMs?: number
  readonly finishReason?: string
  readonly messageId?: string
  readonly error?: { readonly code: string; readonly message: string; readonly hint?: string }
  readonly usage?: JsonObject
  readonly costUsd?: number
}

/**
 * One inference of a side that is defined with `agent()`, i.e. by a strategy such as `react()`. Whenever a process
 * continues the thread, the strategy is run again from the start of its turn. Its requests are then answered from
 * these events, until it makes a request that is not in the log. Programs that do not know this event ignore it, so it
 * needs no new version of the log.
 */
export interface InferenceRecorded extends EventBase<'inference_recorded'> {
  readonly turnId: string
  readonly stepId: string
  readonly side: Side
  /**
   * SHA-256 of the strategy's request. If a later run of the strategy makes a different request at this point, it
   * has diverged from the log.
   */
  readonly request: string
  /** How many messages the thread had when this run of the strategy began. */
  readonly history: number
  /** The id of the answer when it is a message of the conversation, which is added in the same commit. */
  readonly messageId?: string
  /**
   * The answer when it is not part of the conversation, e.g. the reasoning of `react()` or the plan of
   * `plan()`.
   */
  readonly message?: MessageJSON
  readonly stopReason: StopReason
  /** A `TokenUsage` of `@skein/ai`, without the vendor's own numbers. */
  readonly usage: JsonObject
  readonly costUsd?: number
}

/**
 * The contents of the thread were erased. The remaining events record times, agents and costs, but no texts.
 */
export interface ThreadErased extends EventBase<'thread_erased'> {
  readonly by?: string
  readonly eventCount: number
}

/** Tokens that were spent without adding a message to the thread: on failed requests, summaries and so on. */
export interface RuntimeUsageRecorded extends UsageRecorded {
  readonly costUsd?: number
  /**
   * The request that used the tokens. Its `model_answered` has the same usage, so only one of the two is counted.
   */
  readonly logId?: string
}

/** Events of the runtime beyond those of `@skein/threads`. */
export type RuntimeOnlyEvent =
  | MessageQueued
  | MessageUnqueued
  | SessionStart
  | SessionEnd
  | SessionFailing
  | WriteUndone
  | UndoDecided
  | SessionStopRequested
  | StepFailed
  | CallReset
  | CallChanged
  | GrantMade
  | GrantRevoked
  | ImmediateDone
  | StopRequested
  | TurnCut
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
  | RuntimeErrorRaised
  | RuntimeMessageAdded
  | RuntimeTurnStart
  | RuntimeStepStart
  | RuntimeToolExecutionStart
  | RuntimeToolExecutionEnd
  | RuntimeInterruptOpened
  | RuntimeInterruptAnswered
  | RuntimeSubagentCreated
  | RuntimeUsageRecorded

/**
 * Every event that the log of a thread can contain: the events of `@skein/threads`, some with more fields,
 * and the runtime's own events.
 */
export type RuntimeEvent =
  Exclude<ThreadEvent, { type: Widened['type'] }> | Widened | RuntimeOnlyEvent

/** An event with its number in the log, from 1. */
export interface StoredEvent {
  readonly seq: number
  readonly event: RuntimeEvent
}

/**
 * Returns the events that register the sides of an agent in the log. Turns refer to a side as
 * `<agent>/<side>`.
 */
export function agentRegistrations({ name, a, b }: ResolvedAgent, at: string): AgentRegistered[] {
  return [a, ...(b ? [b] : [])].map(({ side, label }) => ({
    type: 'agent_registered',
    at,
    agent: { agent_id: `${name}/${side}`, agent_name: label || name, created_at: at },
  }))
}
