import type { StreamEvent } from '../contract/event.ts'
import {
  createProvider,
  type BoundLLMModel,
  type LLMCapabilities,
  type LLMHandler,
  type LLMRequest,
  type ModelReference,
} from '../contract/provider.ts'
import {
  type Bound,
  type BoundCombination,
  type Combination,
  type MemberAnswer,
  type MemberPolicy,
  withReport,
  openStream,
  readOpened,
  originOf,
  emptyAnswer,
} from './member.ts'
import { type Modality } from '../contract/error.ts'
import type { BoundEmbeddingModel, EmbeddingHandler, EmbeddingRequest } from '../embedding.ts'
import type { BoundImageModel, ImageCapabilities, ImageHandler, ImageRequest } from '../image.ts'

/** Makes one model reference of several members, for every modality that all of them support. */
export function combinedModel(combination: Combination): ModelReference {
  const { name, members } = combination
  const has = (modality: Modality): boolean =>
    members.every(({ reference }) => reference.provider.handlers[modality])
  const provider = createProvider({
    name,
    llm: has('llm') ? llmHandler(combination) : undefined,
    embedding: has('embedding') ? embeddingHandler(combination) : undefined,
    image: has('image') ? imageHandler(combination) : undefined,
  })
  return provider(members.map(({ label }) => label).join('|'))
}

function bindMembers<M>({ members }: Combination, bind: (of: ModelReference, index: number) => M) {
  return members.map((member, index) => ({ ...member, bound: bind(member.reference, index) }))
}

/** Makes the handler that sends each inference to a member (one of the combined models) chosen by the policy. */
function llmHandler(combination: Combination): LLMHandler {
  const bindAll = (): Bound<BoundLLMModel>[] =>
    bindMembers(combination, (reference) => reference.provider.handlers.llm!.bind(reference))
  return {
    get capabilities(): LLMCapabilities {
      return llmCapabilities(bindAll(), combination)
    },
    bind: ({ modelId }) => new CombinedLLM(modelId, bindAll(), combination),
  }
}

class CombinedLLM implements BoundLLMModel {
  readonly modelId: string
  readonly provider: string
  readonly capabilities: LLMCapabilities
  declare readonly wire?: NonNullable<BoundLLMModel['wire']>
  /**
   * The `readData` of the first member that has one. It leaves data that needs no conversion unchanged, so it
   * suits the answers of all members.
   */
  readonly readData: BoundLLMModel['readData']
  readonly #members: readonly Bound<BoundLLMModel>[]
  readonly #policy: MemberPolicy

  constructor(modelId: string, members: readonly Bound<BoundLLMModel>[], combination: Combination) {
    this.modelId = modelId
    this.provider = combination.name
    this.capabilities = llmCapabilities(members, combination)
    const wire = members[0]?.bound.wire
    if (wire && members.every(({ bound }) => bound.wire === wire)) this.wire = wire
    this.readData = members.find(({ bound }) => bound.readData)?.bound.readData
    this.#members = members
    this.#policy = combination.policy
  }

  async complete(request: LLMRequest): Promise<readonly StreamEvent[]> {
    const answer = await this.#run(request, false, async (member) => {
      const events = await member.bound.complete(member.toRequest(request))
      // An answer without its terminal event is a failure, so that the policy can try another member.
      if (events.some(({ type }) => type === 'message_stop')) return events
      throw emptyAnswer(originOf(member.bound, 'llm'))
    })
    return reported(answer.value, answer)
  }

  async *stream(request: LLMRequest): AsyncGenerator<readonly StreamEvent[], void, undefined> {
    const answer = await this.#run(request, true, (member) => {
      const origin = originOf(member.bound, 'llm')
      return openStream(member.bound.stream(member.toRequest(request)), isContent, origin)
    })
    try {
      for await (const events of readOpened(answer.value)) yield reported(events, answer)
    } catch (error) {
      this.#policy.failedLate?.(answer.member, error)
      throw error
    }
  }

  #run<T>(
    request: LLMRequest,
    streaming: boolean,
    attempt: (member: Bound<BoundLLMModel>) => Promise<T>,
  ): Promise<MemberAnswer<Bound<BoundLLMModel>, T>> {
    const members = this.#members
    return this.#policy.run({ request, modality: 'llm', streaming, members, attempt })
  }
}

/** Adds the answering model to `message_start`, and the warnings about other members to `message_stop`. */
function reported(
  events: readonly StreamEvent[],
  { member, warnings }: MemberAnswer<Bound<BoundLLMModel>, unknown>,
): readonly StreamEvent[] {
  if (!events.some(({ type }) => type === 'message_start' || type === 'message_stop')) return events
  return events.map((event): StreamEvent => {
    if (event.type === 'message_start') {
      const { provider, modelId } = member.bound
      return { ...event, delta: { provider, model: modelId, ...event.delta } }
    }
    if (event.type !== 'message_stop' || warnings.length === 0) return event
    const all = [...warnings, ...(event.delta.warnings ?? [])]
    return { ...event, delta: { ...event.delta, warnings: all } }
  })
}

function llmCapabilities(
  members: readonly Bound<BoundLLMModel>[],
  { capabilities }: Combination,
): LLMCapabilities {
  const can = (name: keyof LLMCapabilities): boolean =>
    members[capabilities](({ bound }) => bound.capabilities[name])
  return Object.freeze({
    streaming: can('streaming'),
    tools: can('tools'),
    structuredOutput: can('structuredOutput'),
    imageInput: can('imageInput'),
    documentInput: can('documentInput'),
    videoInput: can('videoInput'),
    audioInput: can('audioInput'),
  })
}

/** Checks whether an event is content: any event except the start of a message or of a text or reasoning block. */
function isContent({ type, delta }: StreamEvent): boolean {
  if (type === 'message_start') return false
  return type !== 'content_block_start' || (delta.block !== 'text' && delta.block !== 'reasoning')
}

/**
 * Makes the handler that embeds with the member chosen by the policy; the smallest batch limits of all members apply.
 */
function embeddingHandler(combination: Combination): EmbeddingHandler {
  const { name: provider, members, policy } = combination
  const handlers = members.map(({ reference }) => reference.provider.handlers.embedding!)
  const tokens = handlers.flatMap(({ maxBatchTokens }) => maxBatchTokens ?? [])
  return {
    maxBatchSize: Math.min(...handlers.map(({ maxBatchSize }) => maxBatchSize)),
    maxBatchTokens: tokens.length > 0 ? Math.min(...tokens) : undefined,
    imageInput: handlers.every(({ imageInput }) => imageInput),
    bind: ({ modelId }) => {
      const bound = bindMembers(combination, (reference, index) => handlers[index]!.bind(reference))
      return combinedEmbedding({ modelId, provider, members: bound, policy })
    },
  }
}

type Embedder = Bound<BoundEmbeddingModel>

function combinedEmbedding(
  combination: BoundCombination<BoundEmbeddingModel>,
): BoundEmbeddingModel {
  const { modelId, provider, policy } = combination
  /**
   * The member chosen for each call, by the call's signal: all batches of a call must use the same model,
   * because vectors of two models cannot be compared.
   */
  const claims = new WeakMap<AbortSignal, Promise<readonly Embedder[]>>()

  async function embedBy(members: readonly Embedder[], request: EmbeddingRequest) {
    const attempt = (member: Embedder) => member.bound.embed(member.toRequest(request))
    const task = { request, modality: 'embedding', streaming: false, members, attempt } as const
    const answer = await policy.run(task)
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
      claimed.catch(() => {}) // the same error is thrown by `await first` below
      claims.set(request.signal, claimed)
      return (await first).result
    },
  }
}

/** Makes the handler that sends each image request to a member chosen by the policy. */
function imageHandler(combination: Combination): ImageHandler {
  const { name: provider, policy, capabilities } = combination
  const bind = (reference: ModelReference) => reference.provider.handlers.image!.bind(reference)
  return {
    bind: ({ modelId }) => {
      const members = bindMembers(combination, bind)
      return combinedImage({ modelId, provider, members, policy }, capabilities)
    },
  }
}

function combinedImage(
  combination: BoundCombination<BoundImageModel>,
  mode: Combination['capabilities'],
): BoundImageModel {
  const { modelId, provider, members, policy } = combination
  const run = async <T>(
    request: ImageRequest,
    { streaming, able }: { streaming: boolean; able: (bound: BoundImageModel) => boolean },
    attempt: (bound: BoundImageModel, request: ImageRequest) => Promise<T>,
  ): Promise<MemberAnswer<Bound<BoundImageModel>, T>> =>
    policy.run({
      request,
      modality: 'image',
      streaming,
      members: members.filter(({ bound }) => able(bound)),
      attempt: (member) => attempt(member.bound, member.toRequest(request)),
    })
  return {
    modelId,
    provider,
    capabilities: imageCapabilities(members, mode),
    async generate(request) {
      const able = ({ capabilities }: BoundImageModel): boolean => capabilities.generate
      const task = { streaming: false, able }
      const answer = await run(request, task, (bound, asked) => bound.generate(asked))
      return withReport(answer.value, answer, provider)
    },
    async edit(request) {
      const able = ({ edit }: BoundImageModel): boolean => edit !== undefined
      const task = { streaming: false, able }
      const answer = await run(request, task, (bound, asked) => bound.edit!(asked))
      return withReport(answer.value, answer, provider)
    },
    async *stream(request) {
      const able = ({ stream }: BoundImageModel): boolean => stream !== undefined
      const answer = await run(request, { streaming: true, able }, (bound, asked) =>
        openStream(inBatches(bound.stream!(asked)), () => true, originOf(bound, 'image')),
      )
      for await (const events of readOpened(answer.value))
        for (const event of events)
          yield event.type === 'end' ? withReport(event, answer, provider) : event
    },
  }
}

function imageCapabilities(
  members: readonly Bound<BoundImageModel>[],
  mode: Combination['capabilities'],
): ImageCapabilities {
  const most = members.flatMap(({ bound }) => bound.capabilities.maxImages ?? [])
  return Object.freeze({
    generate: members[mode](({ bound }) => bound.capabilities.generate),
    streaming: members[mode](({ bound }) => bound.capabilities.streaming && !!bound.stream),
    edit: members[mode](({ bound }) => bound.capabilities.edit && !!bound.edit),
    maxImages: most.length > 0 ? Math.min(...most) : undefined,
  })
}

async function* inBatches<T>(source: AsyncIterable<T>): AsyncGenerator<readonly T[]> {
  for await (const item of source) yield [item]
}
