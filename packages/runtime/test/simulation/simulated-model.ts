import {
  createProvider,
  ErrorCode,
  UPPError,
  type LLMRequest,
  type ModelReference,
} from '@skein/ai'
import { calls, fails, reasons, says, scripted, type ScriptPart } from '@skein/ai/testing'
import type { JsonObject, JsonValue } from '@skein/base'
import type { Lane } from '../../src/testing/simulation.ts'
import type { World } from './world.ts'

/** How one side is inclined. */
export interface Temper {
  /** The tool that ends its session, called sooner or later. */
  readonly ends?: string
  /** How it gives up, seldom. */
  readonly givesUp?: string
  /** Tools are called this often at first. */
  readonly calls?: number
  /** Its answers should be JSON; half of them are. */
  readonly isFormal?: boolean
}

/** A model that says and calls what chance wants; its words come in pieces, each in its own turn. */
export function simulatedModel(
  world: World,
  lane: Lane,
  modelId: string,
  temper: Temper = {},
): ModelReference {
  const inner = scripted((request) => answer(world, request, temper), {
    modelId,
    chunks: world.chance.pick([3, 7, 'word']),
  })
  const bound = inner.provider.handlers.llm!.bind(inner)
  async function* stream(request: LLMRequest) {
    world.requests.push(request)
    await lane.turn(`model ${modelId}`, request.signal)
    for await (const batch of bound.stream(request)) {
      if (world.chance.happens(0.25)) await lane.turn(`words ${modelId}`, request.signal)
      if (request.signal.aborted) throw cancelled(request.signal)
      yield batch
    }
  }
  const provider = createProvider({
    name: 'simulated',
    llm: {
      capabilities: bound.capabilities,
      bind: (reference) => ({
        modelId: reference.modelId,
        provider: 'simulated',
        capabilities: bound.capabilities,
        stream,
        async complete(request) {
          const events = []
          for await (const batch of stream(request)) events.push(...batch)
          return events
        },
      }),
    },
  })
  return provider(modelId)
}

function cancelled(signal: AbortSignal): UPPError {
  return new UPPError('aborted', {
    code: ErrorCode.Cancelled,
    provider: 'simulated',
    modality: 'llm',
    cause: signal.reason,
  })
}

function answer(world: World, request: LLMRequest, temper: Temper): readonly ScriptPart[] {
  const { chance } = world
  if (chance.happens(0.03)) return [says('Half a'), fails({ code: 'RATE_LIMITED' })]
  if (chance.happens(0.006)) return [fails({ code: 'INVALID_REQUEST', message: 'no' })]
  if (chance.happens(0.01)) return [says('')]
  const words = temper.isFormal
    ? chance.pick(['{"ok":true}', '{"ok":"no"}', speak(world)])
    : speak(world)
  const said = request.messages.filter(({ type }) => type === 'assistant').length
  const names = request.tools.map(({ name }) => name)
  const { ends, givesUp } = temper
  if (givesUp !== undefined && chance.happens(0.06))
    return [calls(givesUp, { why: words }, { id: `call_${world.ids().slice(-6)}` })]
  if (ends !== undefined && (said > 4 || chance.happens(0.5)))
    return [
      calls(
        ends,
        { text: words, files: filesOf(world, request) },
        { id: `call_${world.ids().slice(-6)}` },
      ),
    ]
  const eager = said > 8 ? 0.1 : (temper.calls ?? 0.6)
  if (names.length === 0 || !chance.happens(eager)) return [says(words)]
  const count = chance.pick([1, 1, 1, 2, 3])
  const made = Array.from({ length: count }, () => callOf(world, request, chance.pick(names)))
  return [
    ...(chance.happens(0.2) ? [reasons('Hm.')] : []),
    ...(chance.happens(0.3) ? [says(words)] : []),
    ...made,
  ]
}

/** A model that got hold of a secret may say it. */
function speak({ chance, canary, plan }: World): string {
  const words = `word-${chance.below(1e6)}`
  return plan.hasSecrets && chance.happens(0.1) ? `${words} ${canary.leak(chance)} end` : words
}

function filesOf({ chance }: World, request: LLMRequest): string[] {
  const known = JSON.stringify(request.messages).match(/\/note-\d+\.txt/g) ?? []
  if (known.length === 0 || chance.happens(0.5)) return []
  return [chance.pick(known)]
}

function callOf(world: World, request: LLMRequest, name: string): ScriptPart {
  const { chance } = world
  // Some servers number the calls of each answer anew, or give two calls one id, or none.
  const id = chance.happens(0.1)
    ? chance.pick(['', 'call_0', 'call_1'])
    : `call_${world.ids().slice(-6)}`
  if (chance.happens(0.02)) return calls('no_such_tool', {}, { id })
  if (chance.happens(0.02)) return calls(name, '{"broken":', { id })
  return calls(name, argumentsOf(world, request, name), { id })
}

function argumentsOf(world: World, request: LLMRequest, name: string): JsonObject {
  const { chance } = world
  const ref = `r${chance.below(1e9)}`
  if (name === 'subagent_create') {
    const parameters = request.tools.find((tool) => tool.name === name)?.parameters
    const known = (parameters?.properties as { agent?: { enum?: string[] } })?.agent?.enum ?? []
    return { agent: chance.pick(known), name: `n${chance.below(100)}`, message: ref }
  }
  if (name === 'subagent_message') {
    const known = JSON.stringify(request.messages).match(/reference: [0-9a-f-]{36}/g) ?? []
    const reference = known.length > 0 ? chance.pick(known).slice(11) : 'nobody'
    return { reference, message: ref }
  }
  return { ref, message: ref, text: ref, files: filesOf(world, request), ...fieldsOf(world) }
}

/** Values for the fields that the schemas of writes make others of; some do not fit. */
function fieldsOf({ chance, fields }: World): JsonObject {
  const sent: Record<string, JsonValue> = {}
  for (const [place, [, values]] of fields.entries()) {
    const value = chance.happens(0.6) ? values[0] : chance.pick(values)
    if (value !== undefined) sent[`x${place}`] = value
  }
  return sent
}
