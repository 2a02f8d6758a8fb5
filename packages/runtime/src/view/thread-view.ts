import type { ThreadLifecycle } from '../store/head.ts'
import type { CostUsd, ThreadInfo } from '../contract/thread-info.ts'
import type { DeliveryStatus, LoggedOutcome } from '@skein/threads'
import type { UndoStatus } from '@skein/governance'
import type { SessionOutcome } from '../contract/event.ts'

/**
 * A thread as it is shown to people. It is computed from the thread's events alone, so the command
 * line, the API and a page show the same view, live or from a file. Computed from the first events
 * only, it shows the thread at an earlier time.
 */
export interface ThreadView {
  readonly threadId: string
  readonly agent: string
  readonly title?: string
  readonly parentThreadId?: string
  readonly createdAt: string
  /** The time of the last event. */
  readonly updatedAt: string
  /** The number of the last event of the log. */
  readonly seq: number
  readonly status: ThreadLifecycle
  /** The status text that the agent has set. */
  readonly statusText?: string
  /** The messages, calls and notes of the thread, in order. */
  readonly items: readonly ViewItem[]
  /** The part of the next message that the model has streamed so far. */
  readonly draft?: string
  /** `pending` if a gate will check what the model streams. */
  readonly draftDelivery?: 'pending'
  /** Messages in the queue: the thread has not taken them up yet. */
  readonly queued: readonly ViewMessage[]
  /** Everything that the thread waits for, the oldest first. */
  readonly waiting: readonly ViewWait[]
  readonly children: readonly ViewChild[]
  /** The usage of this thread alone, without its children. */
  readonly usage: ViewUsage
  /**
   * The sums of the thread and all its descendants. Only in answers of the API, because the log of a
   * thread does not contain what its children have spent.
   */
  readonly tree?: ThreadInfo['tree']
  readonly failures: readonly ViewFailure[]
  /** How the last session ended; absent while a session runs. */
  readonly result?: {
    readonly outcome: SessionOutcome
    readonly reason: string
    readonly message?: string
    readonly hint?: string
  }
}

/** One entry in the history of a thread. */
export type ViewItem = ViewMessage | ViewCall | ViewNote

/** A message. Silent messages, which only models see, are not shown. */
export interface ViewMessage {
  readonly type: 'message'
  readonly id: string
  readonly at: string
  readonly from: 'user' | 'agent'
  /** The agent and its side of the conversation, e.g. `support/a`; only for messages of agents. */
  readonly agentId?: string
  readonly userId?: string
  /** The child that reported this message. */
  readonly subagentId?: string
  readonly text: string
  readonly reasoning?: string
  /** Kinds of the blocks that are not text or reasoning: `image`, `document`, … */
  readonly media: readonly string[]
  /** Paths of attached files of the thread. */
  readonly attachments: readonly string[]
  /** Whether people may rely on the message, if it is the answer of an agent with a task class. */
  readonly delivery?: DeliveryStatus
}

/** A call of a tool. */
export interface ViewCall {
  readonly type: 'call'
  readonly id: string
  readonly at: string
  readonly agentId?: string
  readonly toolName: string
  /** The arguments with which the call runs; until the tool has parsed them, those that the model sent. */
  readonly arguments: unknown
  /** What the model sent, if the tool has made other arguments of it. */
  readonly sentArguments?: unknown
  /**
   * `requested` before the call runs, `waiting` while someone has to answer, `running`, then the outcome of the call.
   */
  readonly state: 'requested' | 'waiting' | 'running' | LoggedOutcome
  readonly result?: unknown
  readonly endedAt?: string
  /** How the call really ended, if that was reported after its outcome had been recorded as unknown. */
  readonly late?: { readonly at: string; readonly outcome: LoggedOutcome; readonly result: unknown }
  /** What became of the write, if its session failed. */
  readonly undo?: { readonly at: string; readonly status: UndoStatus; readonly error?: string }
  /** The id of the child thread that the call created. */
  readonly childId?: string
}

/** Another event that is worth showing, e.g. a handoff, a summary, a refused answer. */
export interface ViewNote {
  readonly type: 'note'
  readonly at: string
  readonly text: string
}

/** Something that the thread waits for. */
export interface ViewWait {
  /** Who or what ends the wait: a person, the client's code, a child, a timer, or the vendor of a model. */
  readonly for: 'person' | 'client' | 'child' | 'timer' | 'model'
  readonly since: string
  /** The time when the wait ends even without an answer. */
  readonly until?: string
  readonly interruptId?: string
  readonly toolCallId?: string
  readonly toolName?: string
  /** The question, or the reason for the wait. */
  readonly reason?: string
}

/** A child thread, with the facts that are in its parent's log. */
export interface ViewChild {
  readonly threadId: string
  readonly name: string
  readonly title?: string
  readonly createdAt: string
  readonly status: 'running' | 'idle' | 'awaiting_human' | 'completed' | 'failed' | 'terminated'
  readonly statusText?: string
}

/** The tokens and the cost of model requests. */
export interface ViewUsage {
  readonly inputTokens: number
  readonly outputTokens: number
  /** Null if the cost of any request is unknown, because the sum would then be too low. */
  readonly costUsd: CostUsd
  /** The number of requests to models. */
  readonly requests: number
  /** The number of turns of agents; a turn that waited and was continued counts once. */
  readonly turns: number
}

/** A failure that the log records. */
export interface ViewFailure {
  readonly at: string
  readonly code: string
  readonly message: string
  readonly hint?: string
  /** When the failed request is tried again. */
  readonly retryAt?: string
}
