import type { ModelReference, Params, ProviderConfig } from '../contract/provider.ts'
import { invalidRequest, type Modality } from '../contract/error.ts'
import type { AnyRequest } from '../contract/middleware.ts'
import { protectConfig } from '../turn/request.ts'

/** A model among others, with what only it is to be sent. */
export interface MemberOptions {
  readonly model: ModelReference
  /** Merged over the params of the call. */
  readonly params?: Params
  /** Merged over the config of the call: key, address and headers of this vendor. */
  readonly config?: ProviderConfig
}

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

export function toMembers(inputs: readonly MemberInput[], name: string): readonly Member[] {
  if (inputs.length === 0) throw noModels(name)
  const members = inputs.map((input) => ('model' in input ? input : { model: input }))
  const providers = new Set(members.map(({ model }) => model.provider.name))
  return members.map((member, index) =>
    toMember(member, { index, isMixed: providers.size > 1, name }),
  )
}

function toMember(
  { model, params, config }: MemberOptions,
  { index, isMixed, name }: { index: number; isMixed: boolean; name: string },
): Member {
  return {
    index,
    reference: model,
    label: `${model.provider.name}/${model.modelId}`,
    toRequest(request) {
      if (isMixed) refuseVendorConfig(request, name)
      if (!params && !config) return request
      return {
        ...request,
        ...(params && { params: { ...request.params, ...params } }),
        ...(config && { config: protectConfig({ ...request.config, ...config }) }),
      }
    },
  }
}

/** A key of one vendor must never reach another. */
function refuseVendorConfig(request: AnyRequest, name: string): void {
  for (const field of ['apiKey', 'baseUrl', 'headers'] as const) {
    if (request.config[field] === undefined) continue
    throw invalidRequest(
      `config.${field} was given for a ${name} over models of several vendors.`,
      { provider: name, modality: modalityOf(request) },
      `Give it to the one it belongs to: ${name}([{ model, config: { ${field} } }, …]).`,
    )
  }
}

function modalityOf(request: AnyRequest): Modality {
  if ('messages' in request) return 'llm'
  return 'inputs' in request ? 'embedding' : 'image'
}

function noModels(name: string): Error {
  const origin = { provider: name, modality: 'llm' } as const
  return invalidRequest(`${name}() was given no models.`, origin, 'Pass at least one.')
}
