import type { BoundEmbeddingModel, EmbeddingHandler, EmbeddingRequest } from '../embedding.ts'
import { withReport, type Bound, type BoundCombination, type Combination } from './member-policy.ts'

/** Batches no larger than every member takes. */
export function embeddingHandler({ name, members, policy }: Combination): EmbeddingHandler {
  const handlers = members.map(({ reference }) => reference.provider.handlers.embedding!)
  const tokens = handlers.flatMap(({ maxBatchTokens }) => maxBatchTokens ?? [])
  return {
    maxBatchSize: Math.min(...handlers.map(({ maxBatchSize }) => maxBatchSize)),
    ...(tokens.length > 0 && { maxBatchTokens: Math.min(...tokens) }),
    imageInput: handlers.every(({ imageInput }) => imageInput),
    bind: ({ modelId }) => {
      const bound = members.map((member, index) => ({
        ...member,
        bound: handlers[index]!.bind(member.reference),
      }))
      return combinedEmbedding({ modelId, provider: name, members: bound, policy })
    },
  }
}

function combinedEmbedding(
  combination: BoundCombination<BoundEmbeddingModel>,
): BoundEmbeddingModel {
  const { modelId, provider, policy } = combination
  /** By the signal, which the batches of one call share: vectors of two models cannot be compared. */
  const claims = new WeakMap<AbortSignal, Promise<readonly Bound<BoundEmbeddingModel>[]>>()

  async function embedBy(
    members: readonly Bound<BoundEmbeddingModel>[],
    request: EmbeddingRequest,
  ) {
    const answer = await policy.run({
      request,
      modality: 'embedding',
      streaming: false,
      members,
      attempt: (member) => member.bound.embed(member.toRequest(request)),
    })
    return { member: answer.member, result: withReport(answer.value, answer, provider) }
  }

  return {
    modelId,
    provider,
    async embed(request) {
      const claim = claims.get(request.signal)
      if (claim) return (await embedBy(await claim, request)).result
      const first = embedBy(combination.members, request)
      const claimed = first.then(({ member }) => [member])
      claimed.catch(() => {}) // `first` is awaited below and says the same
      claims.set(request.signal, claimed)
      return (await first).result
    },
  }
}
