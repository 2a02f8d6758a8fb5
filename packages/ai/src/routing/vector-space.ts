import { invalidRequest } from '../contract/error.ts'
import type { BoundCombination, Member } from './member.ts'
import type { BoundEmbeddingModel, EmbeddingRequest } from '../embedding.ts'

/**
 * Vectors of two models cannot be compared, even if they have the same length: an index with vectors of both finds
 * nothing. A combination is therefore one vector space, unless its caller says otherwise.
 */
export class VectorSpace {
  readonly #name: string
  readonly #members: readonly Member[]

  /** Throws if two members are models that differ by name, or have different dimensions. */
  constructor({ provider, members }: BoundCombination<BoundEmbeddingModel>) {
    this.#name = provider
    this.#members = members
    const first = members[0]!
    for (const member of members) {
      const [one, other] = [spaceOf(first), spaceOf(member)]
      if (one.model !== undefined && other.model !== undefined && one.model !== other.model)
        throw this.#refusal(first, member, 'are different models')
      if (one.dimensions !== other.dimensions)
        throw this.#refusal(first, member, 'have different dimensions')
    }
  }

  /** Throws if it is not known that a member has the same model as the first one. */
  check(member: Member, request: EmbeddingRequest): void {
    const first = this.#members[0]!
    if (member.index === first.index) return
    const [one, other] = [spaceOf(first, request), spaceOf(member, request)]
    // The same name at the same vendor is the same deployment, e.g. with another key.
    const isSame =
      one.model !== undefined && other.model !== undefined
        ? one.model === other.model
        : member.label === first.label
    if (!isSame) throw this.#refusal(first, member, 'may be different models')
    if (one.dimensions !== other.dimensions)
      throw this.#refusal(first, member, 'have different dimensions')
  }

  #refusal(first: Member, member: Member, why: string): Error {
    return invalidRequest(
      `The embeddings of ${first.label} and ${member.label} would be mixed, but they ${why}.`,
      { provider: this.#name, modality: 'embedding' },
      'Combine one model of several vendors, or set mixVectors: true if nothing compares their vectors.',
    )
  }
}

/** Vendors whose model ids are names that the customer gives to deployments. */
const deployments = new Set(['azure-openai', 'openai-compatible'])

interface Space {
  /** The name of the model without the vendor's prefix; undefined if the id does not say which model it is. */
  readonly model: string | undefined
  readonly dimensions: unknown
}

function spaceOf({ reference, params }: Member, request?: EmbeddingRequest): Space {
  const { provider, modelId } = reference
  const all = { ...request?.params, ...params }
  return {
    model: deployments.has(provider.name)
      ? undefined
      : modelId.slice(modelId.lastIndexOf('/') + 1).toLowerCase(),
    dimensions: all['dimensions'] ?? all['outputDimensionality'],
  }
}
