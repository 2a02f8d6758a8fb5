import type { ModelReference, Params, ProviderConfig } from '../contract/provider.ts'
import type { Modality } from '../contract/error.ts'
import type { AnyRequest } from '../contract/middleware.ts'
import { protectConfig } from '../turn/request.ts'
import { invalidRequest } from '../contract/error.ts'
import type { JsonObject } from '@skein/base'
import type { Warning } from '../contract/turn.ts'

/** A model among others, with what only it is to be sent. */
export interface MemberOptions {
  readonly model: ModelReference
  /** Merged over the params of the call. */
  readonly params?: Params
  /** Merged over the config of the call: key, address and headers of this vendor. */
  readonly config?: ProviderConfig
}

/** A model, or a model with its own params and config. */
export type MemberInput = ModelReference | MemberOptions

/** One model of a fallback or a route. */
export interface Member {
  /** Position among its fellows: the same model may be there twice, with different keys. */
  readonly index: number
  readonly reference: ModelReference
  /** For messages: `openai/gpt-5`. */
  readonly label: string
  /** The request as this model gets it. */
  toRequest<R extends AnyRequest>(request: R): R
}

/** The members of a combination, checked. */
export function toMembers(inputs: readonly MemberInput[], name: string): readonly Member[] {
  if (inputs.length === 0) {
    const origin = { provider: name, modality: 'llm' } as const
    throw invalidRequest(`${name}() was given no models.`, origin, 'Pass at least one.')
  }
  const options = inputs.map((input): MemberOptions =>
    'model' in input ? input : { model: input },
  )
  const isMixed = new Set(options.map(({ model }) => model.provider.name)).size > 1
  return options.map(({ model, params, config }, index) => ({
    index,
    reference: model,
    label: `${model.provider.name}/${model.modelId}`,
    toRequest(request) {
      if (isMixed) {
        // A key of one vendor must never reach another.
        const modality =
          'messages' in request ? 'llm' : 'inputs' in request ? 'embedding' : ('image' as const)
        for (const field of ['apiKey', 'baseUrl', 'headers'] as const) {
          if (request.config[field] === undefined) continue
          throw invalidRequest(
            `config.${field} was given for a ${name} over models of several vendors.`,
            { provider: name, modality },
            `Give it to the one it belongs to: ${name}([{ model, config: { ${field} } }, …]).`,
          )
        }
      }
      if (!params && !config) return request
      return {
        ...request,
        params: params ? { ...request.params, ...params } : request.params,
        config: config ? protectConfig({ ...request.config, ...config }) : request.config,
      }
    },
  }))
}

/** One request to whichever member is to answer it. */
export interface MemberTask<M, T> {
  readonly request: AnyRequest
  readonly modality: Modality
  readonly streaming: boolean
  readonly members: readonly M[]
  readonly attempt: (member: M) => Promise<T>
}

/** What a member answered, and warnings about the members that did not. */
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

/** Several models under one name, and how one of them is chosen. */
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

/** A combination whose members are bound for one modality. */
export interface BoundCombination<B> {
  readonly modelId: string
  readonly provider: string
  readonly members: readonly Bound<B>[]
  readonly policy: MemberPolicy
}

/** Adds who answered to the metadata of results that have no warnings of their own (embeddings, images). */
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
  const report = { provider, model, warnings: said.length > 0 ? said : undefined }
  return { ...result, metadata: { ...result.metadata, [name]: report } }
}
