import type { LoggedOutcome } from '@skein/threads'
import type { SessionOutcome } from '../contract/event.ts'
import type { ThreadLifecycle } from '../store/store.ts'

/**
 * A thread as people are shown it. It is a fold of the thread's events and of nothing else, so the
 * command, the API and a page show the same thing, live or from a file, and the thread as it was at any
 * earlier moment is the fold of fewer events.
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
  /** What the agent said about its own state. */
  readonly statusText?: string
  /** What was said and done, in order. */
  readonly items: readonly ViewItem[]
  /** What the model has streamed of its next message. */
  readonly draft?: string
  /** Messages that the thread has not read yet. */
  readonly queued: readonly ViewMessage[]
  /** What the thread waits for, the oldest first. */
  readonly waiting: readonly ViewWait[]
  readonly children: readonly ViewChild[]
  /** Of this thread alone, without its children. */
  readonly usage: ViewUsage
  readonly failures: readonly ViewFailure[]
  /** How the last session ended; absent while one runs. */
  readonly result?: {
    readonly outcome: SessionOutcome
    readonly reason: string
    readonly message?: string
  }
}

/** One thing in the course of a thread. */
export type ViewItem = ViewMessage | ViewCall | ViewNote

/** Something that was said. Silent messages, which only models see, are not shown. */
export interface ViewMessage {
  readonly type: 'message'
  readonly id: string
  readonly at: string
  readonly from: 'user' | 'agent'
  /** `<agent>/<side>`, for messages of agents. */
  readonly agentId?: string
  readonly userId?: string
  /** The child that reported this. */
  readonly subagentId?: string
  readonly text: string
  readonly reasoning?: string
  /** Kinds of the other blocks: `image`, `document`, … */
  readonly media: readonly string[]
  /** Paths of files of the thread. */
  readonly attachments: readonly string[]
}

/** A call of a tool. */
export interface ViewCall {
  readonly type: 'call'
  readonly id: string
  readonly at: string
  readonly agentId?: string
  readonly toolName: string
  readonly arguments: unknown
  /** `requested` until it runs, `waiting` while somebody has to answer, `running`, then how it ended. */
  readonly state: 'requested' | 'waiting' | 'running' | LoggedOutcome
  readonly result?: unknown
  readonly endedAt?: string
  /** The thread of the child that the call created. */
  readonly childId?: string
}

/** Something else that a reader should know of: a handoff, a summary, a refused answer. */
export interface ViewNote {
  readonly type: 'note'
  readonly at: string
  readonly text: string
}

/** Something that the thread waits for. */
export interface ViewWait {
  /** Who or what has to act: a person, the client's own code, a child, the clock, or the vendor of a model. */
  readonly for: 'person' | 'client' | 'child' | 'timer' | 'model'
  readonly since: string
  /** When the wait ends by itself. */
  readonly until?: string
  readonly interruptId?: string
  readonly toolCallId?: string
  readonly toolName?: string
  /** What is asked, or why the thread waits. */
  readonly reason?: string
}

/** A child thread as its parent knows it. */
export interface ViewChild {
  readonly threadId: string
  readonly name: string
  readonly title?: string
  readonly createdAt: string
  readonly status: 'running' | 'idle' | 'awaiting_human' | 'completed' | 'failed' | 'terminated'
  readonly statusText?: string
}

/** What was spent on models. */
export interface ViewUsage {
  readonly inputTokens: number
  readonly outputTokens: number
  /** Absent when the price of a request is not known: the sum would be a guess. */
  readonly costUsd?: number
  /** Requests to models. */
  readonly requests: number
  /** Turns of agents; one that was parked and continued counts once. */
  readonly turns: number
}

/** Something that went wrong. */
export interface ViewFailure {
  readonly at: string
  readonly code: string
  readonly message: string
  readonly hint?: string
  /** When it is tried again. */
  readonly retryAt?: string
}
