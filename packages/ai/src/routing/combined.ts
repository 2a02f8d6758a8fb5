import type { JsonObject } from '@skein/base'
import type { ProviderMetadata, UserContent } from '../contract/content.ts'
import type { StreamEvent } from '../contract/event.ts'
import type { Message } from '../contract/message.ts'
import { fitRequest, type FittedRequest } from '../turn/fit-request.ts'
import {
  createProvider,
  type BoundLLMModel,
  type LLMCapabilities,
  type LLMHandler,
  type LLMRequest,
  type ModelReference,
  type ModelSettings,
  type Settings,
} from '../contract/provider.ts'
import {
  type Bound,
  type BoundCombination,
  type Combination,
  type MemberAnswer,
  type MemberPolicy,
  type UnableMember,
  withReport,
  originOf,
  emptyAnswer,
} from './member.ts'
import { openStream, readOpened } from './open-stream.ts'
import { type Modality, toUPPError, type UPPError } from '../contract/error.ts'
import { mediaCapability } from '../turn/check-request.ts'
import { identityOfConfig } from '../transport/config-identity.ts'
import { applyScopes } from './scope.ts'
import { regionOf, type Residency, residencyReport, residentMembers } from './residency.ts'
import { VectorSpace } from './vector-space.ts'
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
      return llmCapabilities(bindAll())
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
  readonly identity: JsonObject
  readonly #members: readonly Bound<BoundLLMModel>[]
  readonly #policy: MemberPolicy
  readonly #residency: Residency | undefined
  readonly region: string | undefined

  constructor(modelId: string, members: readonly Bound<BoundLLMModel>[], combination: Combination) {
    this.modelId = modelId
    this.provider = combination.name
    this.capabilities = llmCapabilities(members)
    this.identity = { members: members.map(identityOfMember) }
    // Vendors of one format have different names for its parameters, so they have no format in common.
    const { wire, provider } = members[0]!.bound
    const isAlike = ({ bound }: Bound<BoundLLMModel>): boolean =>
      bound.wire === wire && bound.provider === provider
    if (wire && members.every(isAlike)) this.wire = wire
    this.readData = members.find(({ bound }) => bound.readData)?.bound.readData
    this.#members = members
    this.#policy = combination.policy
    this.#residency = combination.residency
    const regions = new Set(members.map((member) => regionOf(member, { config: {} })))
    if (regions.size === 1) [this.region] = regions
  }

  async complete(request: LLMRequest): Promise<readonly StreamEvent[]> {
    const answer = await this.#run(request, false, async (member, own) => {
      const events = await member.bound.complete(own)
      // An answer without its terminal event is a failure, so that the policy can try another member.
      if (events.some(({ type }) => type === 'message_stop')) return events
      throw emptyAnswer(originOf(member.bound, 'llm'))
    })
    return reported(answer.value, answer, answer.metadata)
  }

  async *stream(request: LLMRequest): AsyncGenerator<readonly StreamEvent[], void, undefined> {
    const answer = await this.#run(request, true, (member, own) =>
      openStream(member.bound.stream(own), isContent, originOf(member.bound, 'llm')),
    )
    try {
      for await (const events of readOpened(answer.value))
        yield reported(events, answer, answer.metadata)
    } catch (error) {
      this.#policy.failedLate?.(answer.member, error)
      throw error
    }
  }

  /** Refuses a block that no member can be sent, with the reason of the first that takes its kind. */
  refuse(block: UserContent): UPPError | undefined {
    const capability = mediaCapability(block)
    const able = this.#members.filter(({ bound }) => !capability || bound.capabilities[capability])
    const refusals = able.flatMap(({ bound }) => bound.refuse?.(block) ?? [])
    return refusals.length === able.length ? refusals[0] : undefined
  }

  /** Each member writes the settings itself; what none of them has is without effect. */
  writeSettings(settings: Settings, messages?: readonly Message[]): ModelSettings {
    const all = this.#members.map(
      ({ bound }) => bound.writeSettings?.(settings, messages).dropped ?? [],
    )
    return { dropped: all[0]!.filter((name) => all.every((names) => names.includes(name))) }
  }

  /**
   * Asks the members that can answer, each with the request as it can take it. What one member cannot do does not
   * keep the others from being asked.
   */
  async #run<T>(
    request: LLMRequest,
    streaming: boolean,
    send: (member: Bound<BoundLLMModel>, request: LLMRequest) => Promise<T>,
  ): Promise<MemberAnswer<Bound<BoundLLMModel>, T> & { readonly metadata?: ProviderMetadata }> {
    const { inside, outside } = residentMembers(this.#members, this.#residency, {
      request,
      provider: this.provider,
      modality: 'llm',
    })
    const fits = new Map<Bound<BoundLLMModel>, FittedRequest>()
    const unable: UnableMember[] = []
    for (const member of inside) {
      const own = applyScopes(member.toRequest(request), member.bound)
      try {
        fits.set(member, fitRequest(own, member.bound, streaming))
      } catch (error) {
        unable.push({ member, error: toUPPError(error, originOf(member.bound, 'llm')) })
      }
    }
    if (fits.size === 0) throw unable[0]!.error
    const answer = await this.#policy.run({
      request,
      modality: 'llm',
      streaming,
      members: [...fits.keys()],
      takesAll: (member) => fits.get(member)!.warnings.length === 0,
      unable,
      attempt: (member) => send(member, fits.get(member)!.request),
    })
    const { warnings } = fits.get(answer.member)!
    const { member } = answer
    return {
      ...answer,
      warnings: warnings.length === 0 ? answer.warnings : [...answer.warnings, ...warnings],
      ...(this.#residency && {
        metadata: {
          [this.provider]: residencyReport(this.#residency, { member, outside, request }),
        },
      }),
    }
  }
}

/** Describes a member for `identity`: its model, and what its own params and config change. */
function identityOfMember({ label, params, config, bound }: Bound<BoundLLMModel>): JsonObject {
  const { identity } = bound
  return {
    label,
    params: params as JsonObject | undefined, // params that are not JSON make the request uncacheable
    config: config && identityOfConfig(config),
    model: identity,
  }
}

/** Adds the answering model to `message_start`, and the warnings about other members to `message_stop`. */
function reported(
  events: readonly StreamEvent[],
  { member, warnings }: MemberAnswer<Bound<BoundLLMModel>, unknown>,
  metadata: ProviderMetadata | undefined,
): readonly StreamEvent[] {
  if (!events.some(({ type }) => type === 'message_start' || type === 'message_stop')) return events
  return events.map((event): StreamEvent => {
    if (event.type === 'message_start') {
      const { delta } = event
      const { provider = member.bound.provider, model = member.bound.modelId } = delta
      return { ...event, delta: { ...delta, provider, model } }
    }
    if (event.type !== 'message_stop' || (warnings.length === 0 && !metadata)) return event
    const { delta } = event
    const all = [...warnings, ...(delta.warnings ?? [])]
    return {
      ...event,
      delta: {
        ...delta,
        warnings: all.length > 0 ? all : undefined,
        metadata: metadata ? { ...delta.metadata, ...metadata } : delta.metadata,
      },
    }
  })
}

/** A combination can do what any of its members can, because a request goes to the members that can take it. */
function llmCapabilities(members: readonly Bound<BoundLLMModel>[]): LLMCapabilities {
  const can = (name: keyof LLMCapabilities): boolean =>
    members.some(({ bound }) => bound.capabilities[name])
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
  const { name: provider, members, policy, mixesVectors, residency } = combination
  const handlers = members.map(({ reference }) => reference.provider.handlers.embedding!)
  const tokens = handlers.flatMap(({ maxBatchTokens }) => maxBatchTokens ?? [])
  return {
    maxBatchSize: Math.min(...handlers.map(({ maxBatchSize }) => maxBatchSize)),
    maxBatchTokens: tokens.length > 0 ? Math.min(...tokens) : undefined,
    imageInput: handlers.every(({ imageInput }) => imageInput),
    bind: ({ modelId }) => {
      const bound = bindMembers(combination, (reference, index) => handlers[index]!.bind(reference))
      return combinedEmbedding(
        { modelId, provider, members: bound, policy, residency },
        mixesVectors,
      )
    },
  }
}

type Embedder = Bound<BoundEmbeddingModel>

function combinedEmbedding(
  combination: BoundCombination<BoundEmbeddingModel>,
  mixesVectors = false,
): BoundEmbeddingModel {
  const { modelId, provider, policy, residency } = combination
  const space = mixesVectors ? undefined : new VectorSpace(combination)
  /**
   * The member chosen for each call, by the call's signal: all batches of a call must use the same model,
   * because vectors of two models cannot be compared.
   */
  const claims = new WeakMap<AbortSignal, Promise<readonly Embedder[]>>()

  async function embedBy(all: readonly Embedder[], request: EmbeddingRequest) {
    const place = { request, provider, modality: 'embedding' } as const
    const { inside: members } = residentMembers(all, residency, place)
    const attempt = async (member: Embedder) => {
      space?.check(member, request)
      return member.bound.embed(member.toRequest(request))
    }
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
      const owners = first.then(({ member }) => [member])
      owners.catch(() => {}) // the same error is thrown by `await first` below
      claims.set(request.signal, owners)
      return (await first).result
    },
  }
}

/** Makes the handler that sends each image request to a member chosen by the policy. */
function imageHandler(combination: Combination): ImageHandler {
  const { name: provider, policy, residency } = combination
  const bind = (reference: ModelReference) => reference.provider.handlers.image!.bind(reference)
  return {
    bind: ({ modelId }) => {
      const members = bindMembers(combination, bind)
      return combinedImage({ modelId, provider, members, policy, residency })
    },
  }
}

function combinedImage(combination: BoundCombination<BoundImageModel>): BoundImageModel {
  const { modelId, provider, members, policy, residency } = combination
  const run = async <T>(
    request: ImageRequest,
    { streaming, able }: { streaming: boolean; able: (bound: BoundImageModel) => boolean },
    attempt: (bound: BoundImageModel, request: ImageRequest) => Promise<T>,
  ): Promise<MemberAnswer<Bound<BoundImageModel>, T>> =>
    policy.run({
      request,
      modality: 'image',
      streaming,
      members: residentMembers(members, residency, { request, provider, modality: 'image' }).inside.filter(({ bound }) => able(bound)), // prettier-ignore
      attempt: (member) => attempt(member.bound, member.toRequest(request)),
    })
  return {
    modelId,
    provider,
    capabilities: imageCapabilities(members),
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

function imageCapabilities(members: readonly Bound<BoundImageModel>[]): ImageCapabilities {
  const most = members.flatMap(({ bound }) => bound.capabilities.maxImages ?? [])
  return Object.freeze({
    generate: members.every(({ bound }) => bound.capabilities.generate),
    streaming: members.every(({ bound }) => bound.capabilities.streaming && !!bound.stream),
    edit: members.every(({ bound }) => bound.capabilities.edit && !!bound.edit),
    maxImages: most.length > 0 ? Math.min(...most) : undefined,
  })
}

async function* inBatches<T>(source: AsyncIterable<T>): AsyncGenerator<readonly T[]> {
  for await (const item of source) yield [item]
}
