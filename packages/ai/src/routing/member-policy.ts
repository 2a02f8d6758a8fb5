import type { JsonObject } from '@skein/base'
import type { Modality } from '../contract/error.ts'
import type { AnyRequest } from '../contract/middleware.ts'
import type { Warning } from '../contract/turn.ts'
import type { Member } from './member.ts'

/** One request to whichever member is to answer it. */
export interface MemberTask<M, T> {
  readonly request: AnyRequest
  readonly modality: Modality
  readonly streaming: boolean
  readonly members: readonly M[]
  readonly attempt: (member: M) => Promise<T>
}

export interface MemberAnswer<M, T> {
  readonly member: M
  readonly value: T
  /** About the members that did not answer. */
  readonly warnings: readonly Warning[]
}

/** How a combined model decides: a fallback tries one after the other, a route picks one. */
export interface MemberPolicy {
  run<M extends Member, T>(task: MemberTask<M, T>): Promise<MemberAnswer<M, T>>
  /** A member failed after it had begun to answer. */
  failedLate?(member: Member, error: unknown): void
}

export interface Combination {
  /** Provider name of the whole. */
  readonly name: string
  readonly members: readonly Member[]
  readonly policy: MemberPolicy
  /** Whether one member that can is enough, or all must. */
  readonly capabilities: 'some' | 'every'
}

/** A member whose model is bound for one modality. */
export type Bound<B> = Member & { readonly bound: B }

export interface BoundCombination<B> {
  readonly modelId: string
  readonly provider: string
  readonly members: readonly Bound<B>[]
  readonly policy: MemberPolicy
}

/** Results without warnings of their own say it in the metadata, beside what the vendor said. */
export function withReport<R extends { readonly metadata?: Readonly<Record<string, JsonObject>> }>(
  result: R,
  {
    member,
    warnings,
  }: MemberAnswer<Bound<{ readonly provider: string; readonly modelId: string }>, unknown>,
  name: string,
): R {
  const { provider, modelId: model } = member.bound
  const said = warnings.map(({ message }) => message)
  const report = { provider, model, ...(said.length > 0 && { warnings: said }) }
  return { ...result, metadata: { ...result.metadata, [name]: report } }
}
