import type { StreamEvent } from '../contract/event.ts'
import type {
  BoundLLMModel,
  LLMCapabilities,
  LLMHandler,
  LLMRequest,
} from '../contract/provider.ts'
import type { Bound, Combination, MemberAnswer, MemberPolicy } from './member-policy.ts'
import { checkedAnswer, isContent, openStream, readOpened } from './opened-stream.ts'

/** Inferences of whichever member the policy chooses. */
export function llmHandler(combination: Combination): LLMHandler {
  const bindAll = (): Bound<BoundLLMModel>[] =>
    combination.members.map((member) => {
      const { reference } = member
      return { ...member, bound: reference.provider.handlers.llm!.bind(reference) }
    })
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
  readonly #members: readonly Bound<BoundLLMModel>[]
  readonly #policy: MemberPolicy

  constructor(modelId: string, members: readonly Bound<BoundLLMModel>[], combination: Combination) {
    this.modelId = modelId
    this.provider = combination.name
    this.capabilities = llmCapabilities(members, combination)
    const wire = members[0]?.bound.wire
    if (wire && members.every(({ bound }) => bound.wire === wire)) this.wire = wire
    this.#members = members
    this.#policy = combination.policy
  }

  async complete(request: LLMRequest): Promise<readonly StreamEvent[]> {
    const answer = await this.#run(request, false, async (member) => {
      const events = await member.bound.complete(member.toRequest(request))
      return checkedAnswer(events, { provider: member.bound.provider, modality: 'llm' })
    })
    return reported(answer.value, answer)
  }

  async *stream(request: LLMRequest): AsyncGenerator<readonly StreamEvent[], void, undefined> {
    const answer = await this.#run(request, true, (member) => {
      const origin = { provider: member.bound.provider, modality: 'llm' } as const
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
    const task = { request, modality: 'llm', streaming, members: this.#members, attempt } as const
    return this.#policy.run(task)
  }
}

/** Events that say who answered, and who did not. */
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
