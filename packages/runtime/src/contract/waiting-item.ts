import type { JsonValue } from '@skein/base'
import type { ApprovalRequest, Risk } from '@skein/governance'
import type { InterruptAnswer } from '@skein/threads'

/**
 * A call or an effect that waits for a person, a call that waits for a client, or a child that cannot be created until
 * a person has given it variables.
 */
export interface WaitingItem {
  readonly threadId: string
  readonly rootId: string
  /** The id of the question; for `variables` the id of the request (`threads.variables.provide` answers it). */
  readonly interruptId: string
  /** The id of the call; where no call waits, the id of the effect or of the request for variables. */
  readonly toolCallId: string
  /** The name of the tool, or of the effect. */
  readonly toolName: string
  /** The arguments with which the call runs: as the tool has parsed them, with defaults and transforms. */
  readonly arguments: JsonValue
  /** What the model sent, if the tool has made other arguments of it. */
  readonly sentArguments?: JsonValue
  /**
   * `in_doubt`: a process died during the call, and a person has to find out whether it had its effect. `variables`: a
   * child needs values that only a person has.
   */
  readonly kind: 'approval' | 'input' | 'in_doubt' | 'variables'
  /** Set when an effect waits instead of a call. */
  readonly effectId?: string
  /** Names of the agents from the root thread down to this thread. */
  readonly path: readonly string[]
  readonly openedAt: string
  readonly expiresAt?: string
  readonly risk?: Risk
  /** For approvals: whether the call, once it has run, cannot be undone. */
  readonly isIrreversible?: boolean
  /** For approvals: the request that has to be signed. */
  readonly request?: ApprovalRequest
  readonly question?: JsonValue
  /** For `variables`: the missing variables. Their values are never part of an item. */
  readonly variables?: readonly WantedVariable[]
}

/** A variable that a child needs. */
export interface WantedVariable {
  readonly name: string
  /** A secret is stored encrypted and never shown again. */
  readonly type: 'text' | 'secret'
  readonly description?: string
}

/** Something that waits or has waited for a person, with all that one needs to decide or to understand it. */
export interface WaitingDetail extends WaitingItem {
  /** `over`: it ended without an answer, because the thread was stopped or terminated, or because it expired. */
  readonly status: 'waiting' | 'decided' | 'over'
  /** What the person is asked, in one sentence that is safe to show. */
  readonly sentence: string
  /** How the call would be undone; null if there is no way, or nothing to undo. */
  readonly undo: JsonValue
  /** The evidence that the thread had when it asked the person, the latest last. */
  readonly evidence: readonly {
    readonly evidenceId: string
    readonly kind: string
    readonly at: string
    readonly summary?: string
    readonly toolCallId?: string
  }[]
  /** Who has approved so far, where several people have to. */
  readonly approvedBy: readonly { readonly by: string; readonly at: string }[]
  readonly decision?: {
    readonly type: InterruptAnswer['type'] | 'provided'
    readonly at: string
    readonly by?: string
    readonly reason?: string
    /** The call with other arguments that the person approved in place of this one. */
    readonly changedTo?: string
  }
}
