import type { JsonObject, JsonValue } from '@skein/base'
import type { Risk } from '@skein/governance'
import type { SendMessage } from './send-message.ts'
import type { ThreadInfo } from './thread-info.ts'
import type { AgentDefinition, Budget } from '../definitions/agent-definition.ts'

/** A thread to create. */
export interface CreateThread<Data = unknown> {
  /** The name of the agent, or its definition, from which the type of `data` in the results of `run` follows. */
  readonly agent: string | AgentDefinition<Data>
  readonly tenant?: string
  readonly owner?: string
  readonly title?: string
  readonly tags?: readonly string[]
  /** An id that the client chose; no other thread of the same tenant and owner may have it. */
  readonly clientId?: string
  readonly env?: Readonly<Record<string, string>>
  readonly secrets?: Readonly<Record<string, string>>
  readonly values?: Readonly<Record<string, JsonValue>>
  readonly metadata?: JsonObject
  readonly budget?: Budget
  /** A first message, which is queued immediately. */
  readonly message?: SendMessage | string
}

/** Where a thread is forked, and how the fork continues. */
export interface ForkThread {
  /** The last message of the fork. Default: the last message of the thread. */
  readonly upTo?: string
  /** In place of `upTo`: the first message that the fork does not have, e.g. because `message` replaces it. */
  readonly before?: string
  readonly owner?: string
  readonly title?: string
  /** A message that is sent to the fork immediately. */
  readonly message?: SendMessage | string
  /** Whether the fork continues without a message, so that its last message is answered again. Default false. */
  readonly isContinued?: boolean
}

/** A fork, and what the original thread did after the point of the fork, which the fork may do again. */
export interface ForkedThread extends ThreadInfo {
  readonly runsAgain: {
    readonly modelCalls: number
    readonly children: number
    readonly calls: readonly {
      readonly toolName: string
      readonly count: number
      readonly risk?: Risk
    }[]
  }
}

/** The id of a thread. `Data` is the type of the data that the sessions of its agent return. */
export type ThreadId<Data = unknown> = string & { readonly '~data'?: Data }

/** A thread that was just created. */
export interface CreatedThread<Data = unknown> extends ThreadInfo {
  readonly id: ThreadId<Data>
}
