import type { StopReason } from '@skein/ai'
import type { JsonObject, JsonValue, MessageJSON } from '@skein/base'
import type { StoredEvent, ThreadHead } from '@skein/runtime'
import type { LoggedOutcome } from '@skein/threads'

/**
 * A thread as it happened, with its descendants: read from a store or from an export. Everything that runs a thread
 * again, compares threads or judges them starts here. It is data and never changes.
 */
export interface RecordedThread {
  readonly threadId: string
  readonly agent: string
  readonly head: RecordedHead
  /** The log. Events are numbered from 1. */
  readonly events: readonly StoredEvent[]
  /** The requests to models, in order, as they were sent, each with its answer. */
  readonly requests: readonly ThreadRequest[]
  /** The calls that models made, in order. */
  readonly calls: readonly RecordedCall[]
  /** What people, clients, parents and programs did to the thread, in order. */
  readonly inputs: readonly RecordedInput[]
  /** The children, in the order in which they were created. */
  readonly children: readonly RecordedThread[]
  /** Contents that the log names by hash: frames of requests, files. */
  readonly blobs: ReadonlyMap<string, Uint8Array>
}

/** What the store knew of a thread besides its log. An export has all but owner, tags and client id. */
export type RecordedHead = Pick<
  ThreadHead,
  'tenant' | 'owner' | 'title' | 'tags' | 'clientId' | 'createdAt' | 'updatedAt' | 'lifecycle'
>

/** One request to a model. */
export interface ThreadRequest {
  /** The number of the event that recorded it. */
  readonly seq: number
  readonly logId: string
  readonly at: string
  readonly side: 'a' | 'b'
  /** The name of the prompt that built it. */
  readonly prompt: string
  readonly stepId: string
  readonly attempt: number
  /** The call that made the request, if its tool is a prompt. */
  readonly toolCallId?: string | undefined
  readonly content: RequestContent
  /** Absent if the process died, or the request was cut, before there was an answer. */
  readonly answer?: RecordedAnswer | undefined
}

/** What a model receives. Two requests are the same if `requestKey` returns the same text for both. */
export interface RequestContent {
  readonly provider: string
  readonly model: string
  readonly system: string | null
  readonly tools: readonly JsonObject[]
  readonly params: JsonObject
  readonly structure?: JsonObject | undefined
  readonly messages: readonly MessageJSON[]
}

/** How a model answered. */
export type RecordedAnswer =
  | {
      readonly type: 'message'
      /** The answer as the log has it: after hooks, with ids of calls that are unique in the thread. */
      readonly message: MessageJSON
      readonly stopReason: StopReason
      readonly usage: RecordedUsage
      readonly durationMs: number
      readonly firstTokenMs?: number | undefined
    }
  | {
      readonly type: 'failure'
      readonly code: string
      readonly message: string
      readonly hint?: string | undefined
      readonly usage?: RecordedUsage | undefined
      readonly durationMs: number
    }

/** Tokens and cost of one request. */
export interface RecordedUsage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedTokens: number
  /** Tokens that were written to the vendor's cache; absent if none were. */
  readonly cacheWriteTokens?: number
  /** The part of `outputTokens` that was spent on reasoning, where the vendor reports it. */
  readonly reasoningTokens?: number
  /** Null if the price of the model was unknown. */
  readonly costUsd: number | null
}

/** One call of a tool. */
export interface RecordedCall {
  /** The number of the event with the message that made the call. */
  readonly seq: number
  readonly toolCallId: string
  readonly toolName: string
  readonly side: 'a' | 'b'
  /** The arguments that the model sent. */
  readonly raw: JsonObject
  /** What the tool's schema made of them, with which it ran. Absent if it never started or waited. */
  readonly parsed?: JsonValue | undefined
  /** Whether a person was asked before it ran, and what the person decided. */
  readonly approval?: RecordedDecision | undefined
  /** Absent if the call never ended. `unknown` if it is not known whether it had its effect. */
  readonly outcome?: LoggedOutcome | undefined
  readonly result?: JsonValue | undefined
  readonly startedAt?: string | undefined
  readonly endedAt?: string | undefined
  /** The thread that the call created. */
  readonly childThreadId?: string | undefined
}

/** A person's decision about a call. */
export interface RecordedDecision {
  readonly interruptId: string
  readonly type: 'approved' | 'denied' | 'waiting'
  readonly by?: string | undefined
}

/**
 * Something that came from outside the thread: what a person, a client, a parent or a program did to it. The event is
 * the one in the log; `seq` is its place.
 */
export interface RecordedInput {
  readonly seq: number
  readonly at: string
  readonly type:
    | 'message'
    | 'answer'
    | 'stop'
    | 'resume'
    | 'terminate'
    | 'edit'
    | 'value'
    | 'grant'
    | 'variables'
    | 'other'
}
