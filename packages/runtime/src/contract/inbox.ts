import type { Answer } from '@skein/agents'
import type { JsonObject } from '@skein/base'
import type { WaitingDetail, WaitingItem } from './waiting-item.ts'
import type { WaitingQuery } from '../store/waiting-query.ts'

/** A person's decision about a waiting call. */
export interface ApprovalDecision {
  readonly threadId: string
  readonly interruptId: string
  /** The authenticated person. */
  readonly by: string
  readonly reason?: string
  /** Approval tokens that were signed elsewhere; without them the runtime signs in the name of `by`. */
  readonly tokens?: readonly string[]
  /**
   * The digest of the request that the person has seen (`request.digest` of the waiting item). If the call that waits
   * has another digest, nothing is recorded.
   */
  readonly digest?: string
  /**
   * For `approve`: the arguments with which the person approves the call, in the form in which a model sends them (the
   * `parameters` of the tool): the tool parses them in the same way. If the result differs from the arguments of the
   * call, the call is denied, and another call with these arguments, its own id and its own approval takes its place.
   */
  readonly with?: JsonObject
  /**
   * For `approve`: for how long a standing grant holds that is made together with the approval. The tool then needs no
   * further approval in this thread; see `ThreadGrants`.
   */
  readonly grantForMs?: number
}

/** The answers to the question whether a call that a crash interrupted had its effect. */
export const FOUND_EFFECTS = ['applied', 'absent', 'unknown'] as const

/** What a person found out about a call that a crash interrupted. */
export type FoundEffect = (typeof FOUND_EFFECTS)[number]

/** Selects what waits. Absent conditions do not filter. */
export type WaitingSelection = Pick<
  WaitingQuery,
  'tenant' | 'owner' | 'agent' | 'kind' | 'rootId' | 'threadId' | 'threadIdPart' | 'interruptIdPart'
>

/** A page of what waits. A page may have fewer items than its limit, also when others follow. */
export interface WaitingPage {
  readonly waiting: readonly WaitingItem[]
  /** The cursor of the next page; absent after the last page. */
  readonly nextCursor?: string
}

/** The calls that wait for a person or a client, over all threads. */
export interface Inbox {
  /** Returns everything that waits, the oldest first, or the first `limit` items. */
  list(query?: WaitingSelection & { readonly limit?: number }): Promise<readonly WaitingItem[]>
  /** Returns a page of what waits, the oldest first: 100 items by default, at most 1000. */
  page(
    query?: WaitingSelection & { readonly limit?: number; readonly cursor?: string },
  ): Promise<WaitingPage>
  /** Returns one item, also after it was decided. Rejects with `INTERRUPT_NOT_FOUND`. */
  get(item: { readonly threadId: string; readonly interruptId: string }): Promise<WaitingDetail>
  /** Approves a call. Only the first decision is used; later ones are refused with `ALREADY_ANSWERED`. */
  approve(decision: ApprovalDecision): Promise<void>
  deny(decision: Omit<ApprovalDecision, 'with'> & { readonly reason: string }): Promise<void>
  /**
   * Records what a person found out about a call in doubt: it had its effect, it had none, or it is not known. After
   * `absent` a high-risk call waits for a new approval before it runs again. Give this right only to those who may
   * approve.
   */
  settle(
    item: { readonly threadId: string; readonly interruptId: string; readonly by: string },
    found: FoundEffect,
  ): Promise<void>
  /** Answers a call of a tool that runs at the client, or any other question of a tool. */
  answer(
    item: { readonly threadId: string; readonly interruptId: string; readonly by?: string },
    answer: Extract<Answer, { type: 'result' | 'error' }>,
  ): Promise<void>
}
