import type { JsonSchema } from '@skein/base'
import { isUPPError } from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'
import type { Middleware } from '../contract/middleware.ts'
import type { BoundLLMModel, RequestScope } from '../contract/provider.ts'
import type { Turn } from '../contract/turn.ts'
import { withCallSettings, withScopes } from '../gateway/scoped-options.ts'
import { llm, type LLMOptions } from '../llm.ts'
import { NullFilter, withoutInventedNulls } from '../wires/null-filter.ts'
import { droppedWarnings, readCallSettings } from './call-settings.ts'
import { fromPrompt } from './from-prompt.ts'
import { toMetadata, translateOptions } from './provider-options.ts'
import { supportedUrls } from './supported-urls.ts'
import {
  type AiSdkAnswer,
  type AiSdkResponse,
  noteStart,
  toAnswer,
  toLastParts,
} from './to-answer.ts'
import { PartWriter } from './part-writer.ts'
import type { AiSdkAnswerPart, AiSdkCallOptions, AiSdkWarning } from './types.ts'

/** The `llm` options of a model that the AI SDK calls; tools, structure and messages come with each of its calls. */
export type ToAiSdkOptions = Omit<LLMOptions, 'tools' | 'toolStrategy' | 'structure' | 'signal'>

/** A model for `generateText` and `streamText` of the AI SDK (specification v4). */
export interface AiSdkProviderModel {
  readonly specificationVersion: 'v4'
  readonly provider: string
  readonly modelId: string
  readonly supportedUrls: Record<string, RegExp[]>
  doGenerate(options: AiSdkCallOptions): Promise<AiSdkAnswer>
  doStream(options: AiSdkCallOptions): Promise<AiSdkStream>
}

interface AiSdkStream {
  readonly stream: ReadableStream<AiSdkAnswerPart>
  /** `headers` are there once the vendor has answered. */
  readonly response: { readonly headers?: Readonly<Record<string, string>> | undefined }
}

/**
 * Makes an AI SDK model from a model of this package, with its config and middleware:
 *
 *     generateText({ model: toAiSdk({ model: fallback([a, b]) }), prompt: 'Hello' })
 *
 * Tools run in the AI SDK. The settings of its calls become settings of `llm`, `providerOptions` the parameters and
 * fields of the vendor that they name; what has no place there is a warning. A structured answer is as its schema says:
 * a property that is absent is never null.
 */
export function toAiSdk(options: ToAiSdkOptions): AiSdkProviderModel {
  const { model } = llm(options)
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: supportedUrls(model),
    doGenerate: (call) => generate(new Call(options, model, call)),
    doStream: async (call) => stream(new Call(options, model, call)),
  }
}

/** One call of the AI SDK. */
class Call {
  readonly warnings: readonly AiSdkWarning[]
  /** Filled while the answer arrives. */
  readonly response: AiSdkResponse = {}
  readonly structure: JsonSchema | undefined
  readonly model: BoundLLMModel
  readonly #options: LLMOptions
  readonly #messages: ReturnType<typeof fromPrompt>['messages']
  readonly #signal: AbortSignal | undefined

  constructor(options: ToAiSdkOptions, model: BoundLLMModel, call: AiSdkCallOptions) {
    const prompt = fromPrompt(call.prompt, model)
    const settings = readCallSettings(call, model)
    const vendor = translateOptions(call.providerOptions ?? {}, model)
    const headers = readHeaders(options, model, call)
    const { responseFormat, tools = [] } = call
    this.model = model
    this.structure = responseFormat?.type === 'json' ? responseFormat.schema : undefined
    const warnings = [
      ...prompt.warnings,
      ...settings.warnings,
      ...vendor.warnings,
      ...headers.warnings,
      ...tools
        .filter(({ type }) => type !== 'function')
        .map(({ name }) => ({ type: 'unsupported', feature: `tool ${name}` })),
    ]
    const system = [options.system, prompt.system].filter(Boolean).join('\n\n')
    const own: LLMOptions = {
      ...options,
      config: headers.config,
      system: system === '' ? undefined : system,
      tools: tools.filter(({ type }) => type === 'function').map((tool) => toTool(tool, model)),
      structure: this.structure,
    }
    const systemScopes: RequestScope[] = prompt.systemBlocks
      ? [
          {
            wire: 'anthropic-messages',
            system: options.system ?? null,
            params: { system: prompt.systemBlocks },
          },
        ]
      : []
    const scopes = [...settings.scopes, ...vendor.scopes, ...systemScopes]
    const wantedSettings = { ...settings.settings, ...vendor.settings }
    const withSettings = withCallSettings(own, wantedSettings, { model, messages: prompt.messages })
    this.#options = withScopes(withSettings.options, scopes, model)
    this.warnings = [...warnings, ...droppedWarnings(withSettings.dropped)]
    this.#messages = prompt.messages
    this.#signal = call.abortSignal
  }

  /** Starts the inference. */
  infer(streaming: boolean, signal?: AbortSignal): AsyncGenerator<readonly StreamEvent[], Turn> {
    const { response } = this
    const middleware = this.#options.middleware ?? []
    const noting: Middleware = {
      name: 'response',
      onCycle: (request) => ({
        ...request,
        onHeaders: (headers: Readonly<Record<string, string>>) => {
          response.headers = headers
        },
      }),
    }
    const instance = llm({ ...this.#options, middleware: [noting, ...middleware], signal })
    return instance.infer(this.#messages, { streaming, signal: this.#signal })
  }

  /** The text of a block, as the structure of the call describes it. */
  textOf(text: string): string {
    if (!this.structure || !this.model.readData) return text
    const filter = new NullFilter(this.structure)
    return filter.push(text) + filter.end()
  }
}

async function generate(call: Call): Promise<AiSdkAnswer> {
  const events = call.infer(false)
  const { response, warnings: dropped } = call
  const answer = (turn: Turn): AiSdkAnswer =>
    toAnswer(turn, { dropped, response, textOf: (text) => call.textOf(text) })
  try {
    for (;;) {
      const step = await events.next()
      if (step.done) return answer(step.value)
      noteStart(response, step.value)
    }
  } catch (error) {
    const turn = unparsed(error)
    if (turn) return answer(turn)
    throw error
  }
}

/** The turn of a structured answer that is not JSON: the AI SDK parses the text, and has an error of its own for that. */
function unparsed(error: unknown): Turn | undefined {
  return isUPPError(error) && error.code === 'INVALID_RESPONSE' && error.turn?.cycles === 1
    ? error.turn
    : undefined
}

function stream(call: Call): AiSdkStream {
  const reader = new AbortController()
  const parts = toParts(call, reader.signal)
  return {
    stream: new ReadableStream<AiSdkAnswerPart>({
      async pull(controller) {
        const step = await parts.next()
        if (step.done) controller.close()
        else controller.enqueue(step.value)
      },
      async cancel() {
        reader.abort() // without it, `return` would wait for the next part
        await parts.return(undefined)
      },
    }),
    response: {
      get headers() {
        return call.response.headers
      },
    },
  }
}

/** Converts events to the parts of an AI SDK stream. A failure becomes a part too, of type `error`. */
async function* toParts(
  call: Call,
  signal: AbortSignal,
): AsyncGenerator<AiSdkAnswerPart, undefined> {
  yield { type: 'stream-start', warnings: call.warnings }
  const turn = new Ending(call.infer(true, signal))
  const writer = new PartWriter()
  const events = withoutInventedNulls(turn, call.structure, call.model)
  try {
    for await (const batch of events) for (const event of batch) yield* writer.write(event)
    if (turn.value) yield* toLastParts(turn.value)
  } catch (error) {
    const finishedTurn = unparsed(error)
    if (finishedTurn) yield* toLastParts(finishedTurn)
    else yield { type: 'error', error }
  } finally {
    await turn.return()
  }
  return undefined
}

/** A generator whose return value can be read after it was iterated. */
class Ending implements AsyncIterableIterator<readonly StreamEvent[]> {
  readonly #events: AsyncGenerator<readonly StreamEvent[], Turn>
  value: Turn | undefined

  constructor(events: AsyncGenerator<readonly StreamEvent[], Turn>) {
    this.#events = events
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<readonly StreamEvent[]>> {
    const step = await this.#events.next()
    if (!step.done) return step
    this.value = step.value
    return { done: true, value: undefined }
  }

  async return(): Promise<IteratorResult<readonly StreamEvent[]>> {
    await this.#events.return(undefined as never) // the value of a generator that is closed is not read
    return { done: true, value: undefined }
  }
}

type CallTool = NonNullable<AiSdkCallOptions['tools']>[number]

function toTool(
  { name, description = '', inputSchema, strict, providerOptions }: CallTool,
  model: BoundLLMModel,
): NonNullable<LLMOptions['tools']>[number] {
  const own = toMetadata(providerOptions, model)
  const metadata =
    strict === undefined ? own : { ...own, [model.provider]: { ...own?.[model.provider], strict } }
  return {
    name,
    description,
    parameters: inputSchema ?? {},
    run: () => undefined,
    ...(metadata && { metadata }),
  }
}

/**
 * Adds the headers of a call. Those of a combination would reach the vendors of all members, so there only the AI SDK's
 * own `user-agent` may come, and is left out.
 */
function readHeaders(
  { config }: ToAiSdkOptions,
  { wire }: BoundLLMModel,
  { headers = {} }: AiSdkCallOptions,
): { readonly config: ToAiSdkOptions['config']; readonly warnings: readonly AiSdkWarning[] } {
  const entries = Object.entries(headers).filter(([, value]) => value !== undefined)
  const others = entries.filter(([name]) => name.toLowerCase() !== 'user-agent')
  if (wire !== undefined && entries.length > 0)
    return { config: { ...config, headers: { ...config?.headers, ...Object.fromEntries(entries) } }, warnings: [] } // prettier-ignore
  return {
    config,
    warnings: others.length > 0 ? [{ type: 'unsupported', feature: 'headers' }] : [],
  }
}
