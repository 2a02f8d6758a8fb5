import type { JsonObject } from '@skein/base'
import {
  ErrorCode,
  type ErrorOrigin,
  invalidRequest,
  type Modality,
  UPPError,
} from '../contract/error.ts'
import type { AnyRequest } from '../contract/middleware.ts'
import type { ModelReference, Params, ProviderConfig } from '../contract/provider.ts'
import type { Warning } from '../contract/turn.ts'
import type { Residency } from './residency.ts'
import { protectConfig } from '../transport/config-secrets.ts'

/** One model of a fallback or route, with its own params and config. */
export interface MemberOptions {
  readonly model: ModelReference
  /** Params added to those of the call. They override the call's params of the same name. */
  readonly params?: Params
  /**
   * Config added to that of the call, e.g. key, address and headers of this vendor. It overrides the
   * call's config.
   */
  readonly config?: ProviderConfig
  /**
   * Where this model processes requests, e.g. `eu-central-1`, for a `residency`. It replaces what the model says of
   * itself; you vouch for it.
   */
  readonly region?: string
}

/** A model, or a model with its own params and config. */
export type MemberInput = ModelReference | MemberOptions

/** One model of a fallback or a route. */
export interface Member {
  /** The member's position in the list. The same model may be listed twice, with different keys. */
  readonly index: number
  readonly reference: ModelReference
  /** The model's name in warnings, e.g. `openai/gpt-5`. */
  readonly label: string
  readonly params: Params | undefined
  readonly config: ProviderConfig | undefined
  readonly region: string | undefined
  /** Returns the request with this member's params and config. */
  toRequest<R extends AnyRequest>(request: R): R
}

/** Checks the models given to `fallback` or `route` and converts them to members. */
export function toMembers(inputs: readonly MemberInput[], name: string): readonly Member[] {
  if (inputs.length === 0) {
    const origin = { provider: name, modality: 'llm' } as const
    throw invalidRequest(`${name}() was given no models.`, origin, 'Pass at least one.')
  }
  const options = inputs.map((input): MemberOptions =>
    'model' in input ? input : { model: input },
  )
  const isMixed = new Set(options.map(({ model }) => model.provider.name)).size > 1
  return options.map(({ model, params, config, region }, index) => ({
    index,
    reference: model,
    label: `${model.provider.name}/${model.modelId}`,
    params,
    config,
    region,
    toRequest(request) {
      if (isMixed) {
        // A key must never be sent to a vendor that it does not belong to.
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

/** One request, the members that can answer it, and how to send it to a member. */
export interface MemberTask<M, T> {
  readonly request: AnyRequest
  readonly modality: Modality
  readonly streaming: boolean
  readonly members: readonly M[]
  /** Returns true if a member can take the whole request; false if parts of its history would be left out. */
  readonly takesAll?: (member: M) => boolean
  /** The members that cannot answer this request, with the reason. */
  readonly unable?: readonly UnableMember[]
  readonly attempt: (member: M) => Promise<T>
}

/** A member that cannot answer a request, e.g. because it takes no pictures. */
export interface UnableMember {
  readonly member: Member
  readonly error: UPPError
}

/** The answer of a member. */
export interface MemberAnswer<M, T> {
  readonly member: M
  readonly value: T
  /** Warnings about members that failed or are in cooldown. */
  readonly warnings: readonly Warning[]
}

/** Chooses the member that answers: a fallback tries one after the other, a route picks one. */
export interface MemberPolicy {
  run<M extends Member, T>(task: MemberTask<M, T>): Promise<MemberAnswer<M, T>>
  /** Called when a member failed after its answer had begun. */
  failedLate?(member: Member, error: unknown): void
}

/** Several models under one name, with the policy that chooses among them. */
export interface Combination {
  /** The provider name of the combination. */
  readonly name: string
  readonly members: readonly Member[]
  readonly policy: MemberPolicy
  /** Whether embeddings of different models may be mixed. */
  readonly mixesVectors?: boolean | undefined
  readonly residency?: Residency | undefined
}

/** A member with its model bound for one modality, e.g. as a language model. */
export type Bound<B> = Member & { readonly bound: B }

/** A combination of models whose members are bound for one modality. */
export interface BoundCombination<B> {
  readonly modelId: string
  readonly provider: string
  readonly members: readonly Bound<B>[]
  readonly policy: MemberPolicy
  readonly residency?: Residency | undefined
}

/**
 * Adds the answering model and the warnings to the metadata of results that have no field for warnings
 * (embeddings, images).
 */
export function withReport<R extends { readonly metadata?: Readonly<Record<string, JsonObject>> }>(
  result: R,
  {
    member,
    warnings,
  }: MemberAnswer<Bound<{ readonly provider: string; readonly modelId: string }>, unknown>,
  name: string,
): R {
  const { provider, modelId: model } = member.bound
  const messages = warnings.map(({ message }) => message)
  const report = { provider, model, warnings: messages.length > 0 ? messages : undefined }
  return { ...result, metadata: { ...result.metadata, [name]: report } }
}

export function originOf(
  { provider }: { readonly provider: string },
  modality: Modality,
): ErrorOrigin {
  return { provider, modality }
}

export function emptyAnswer(origin: ErrorOrigin): UPPError {
  return new UPPError(`The answer of ${origin.provider} ended without its terminal event.`, {
    code: ErrorCode.InvalidResponse,
    ...origin,
  })
}
