import { present } from './from-ai-sdk.ts'
import { encodeBase64, type JsonObject } from '@skein/base'
import type { AssistantContent, UserContent } from '../contract/content.ts'
import type { StreamEvent } from '../contract/event.ts'
import {
  AssistantMessage,
  type Message,
  ToolResultMessage,
  UserMessage,
} from '../contract/message.ts'
import type { Params } from '../contract/provider.ts'
import type { ToolCall } from '../contract/tool.ts'
import type { Turn } from '../contract/turn.ts'
import { translateParams } from '../gateway/translate-params.ts'
import { llm, type LLMOptions } from '../llm.ts'
import { decodeLooseBase64, strictBase64 } from '../media/bytes.ts'
import {
  type AiSdkAnswerPart,
  type AiSdkCallOptions,
  type AiSdkMessage,
  type AiSdkPart,
  type AiSdkUsage,
  type AiSdkWarning,
  finishReasons,
  toAiSdkUsage,
  toSource,
} from './types.ts'

/** The `llm` options of a model that the AI SDK calls; tools, structure and messages come with each of its calls. */
export type ToAiSdkOptions = Omit<LLMOptions, 'tools' | 'toolStrategy' | 'structure' | 'signal'>

/** A model for `generateText` and `streamText` of the AI SDK (specification v4). */
export interface AiSdkProviderModel {
  readonly specificationVersion: 'v4'
  readonly provider: string
  readonly modelId: string
  readonly supportedUrls: Record<string, RegExp[]>
  doGenerate(options: AiSdkCallOptions): Promise<AiSdkAnswer>
  doStream(options: AiSdkCallOptions): Promise<{ stream: ReadableStream<AiSdkAnswerPart> }>
}

interface AiSdkAnswer {
  readonly content: readonly AiSdkAnswerPart[]
  readonly finishReason: NonNullable<AiSdkAnswerPart['finishReason']>
  readonly usage: AiSdkUsage
  readonly warnings: readonly AiSdkWarning[]
}

/**
 * Makes an AI SDK model from a model of this package, with its config and middleware:
 *
 *     generateText({ model: toAiSdk({ model: fallback([a, b]) }), prompt: 'Hello' })
 *
 * Tools run in the AI SDK. The settings of its calls are translated to the vendor's parameters; settings that
 * the vendor lacks are reported as warnings.
 */
export function toAiSdk(options: ToAiSdkOptions): AiSdkProviderModel {
  const { model } = llm(options)
  const ask = (call: AiSdkCallOptions, streaming: boolean, signal?: AbortSignal) => {
    const { system, messages } = fromPrompt(call.prompt)
    const { params, dropped } = translateParams(chatParams(call), 'openai-chat', model.wire)
    const prompt = [options.system, system].filter(Boolean).join('\n\n')
    const { responseFormat, abortSignal } = call
    const instance = llm({
      ...options,
      params: { ...options.params, ...params },
      system: prompt === '' ? undefined : prompt,
      tools: (call.tools ?? []).flatMap(({ type, name, description = '', inputSchema }) =>
        type === 'function'
          ? [{ name, description, parameters: inputSchema ?? {}, run: () => undefined }]
          : [],
      ),
      structure: responseFormat?.type === 'json' ? responseFormat.schema : undefined,
      signal,
    })
    const warnings = [
      ...dropped.map((feature) => ({ type: 'unsupported', feature })),
      ...(call.tools ?? [])
        .filter(({ type }) => type !== 'function')
        .map(({ name }) => ({ type: 'unsupported', feature: `tool ${name}` })),
    ]
    return { turn: instance.infer(messages, { streaming, signal: abortSignal }), warnings }
  }
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: { '*/*': [/^https?:\/\//] },
    async doGenerate(call) {
      const { turn, warnings } = ask(call, false)
      for (;;) {
        const step = await turn.next()
        if (step.done) return toAnswer(step.value, warnings)
      }
    },
    async doStream(call) {
      const reader = new AbortController()
      const { turn, warnings } = ask(call, true, reader.signal)
      const parts = toParts(turn, warnings)
      const stream = new ReadableStream<AiSdkAnswerPart>({
        async pull(controller) {
          const step = await parts.next()
          if (step.done) controller.close()
          else controller.enqueue(step.value)
        },
        async cancel() {
          reader.abort() // without it, `return` would wait for the next part
          await parts.return(undefined)
        },
      })
      return { stream }
    },
  }
}

/** Writes the settings of a call as parameters of Chat Completions, which `translateParams` reads. */
function chatParams(call: AiSdkCallOptions): Params {
  const { toolChoice, reasoning } = call as AiSdkCallOptions & { readonly reasoning?: unknown }
  const choice =
    toolChoice?.type === 'tool'
      ? { type: 'function', function: { name: toolChoice.toolName } }
      : toolChoice?.type
  return present({
    max_completion_tokens: call.maxOutputTokens,
    temperature: call.temperature,
    top_p: call.topP,
    top_k: call.topK,
    presence_penalty: call.presencePenalty,
    frequency_penalty: call.frequencyPenalty,
    stop: call.stopSequences,
    seed: call.seed,
    tool_choice: call.tools && call.tools.length > 0 ? choice : undefined,
    reasoning_effort: reasoning === 'provider-default' ? undefined : reasoning,
  })
}

function fromPrompt(prompt: readonly AiSdkMessage[]): { system: string; messages: Message[] } {
  const system: string[] = []
  const messages: Message[] = []
  for (const { role, content, providerOptions } of prompt) {
    const options = providerOptions ? { metadata: providerOptions } : {}
    const parts: readonly AiSdkPart[] =
      typeof content === 'string' ? [{ type: 'text', text: content }] : content
    if (role === 'system') system.push(parts.map(({ text }) => text).join(''))
    else if (role === 'user') messages.push(new UserMessage(parts.map(fromPart), options))
    else if (role === 'tool') {
      const results = parts.filter(({ type }) => type === 'tool-result').map(fromResult)
      messages.push(new ToolResultMessage(results, options))
    } else messages.push(fromAssistant(parts, options))
  }
  return { system: system.join('\n\n'), messages }
}

function fromAssistant(parts: readonly AiSdkPart[], options: object): AssistantMessage {
  const content = parts.flatMap(({ type, text = '', providerOptions }): AssistantContent[] =>
    type === 'text' || type === 'reasoning'
      ? [present({ type, text, metadata: providerOptions })]
      : [],
  )
  const calls = parts.flatMap((part): ToolCall[] => {
    const { type, toolCallId = '', toolName = '', input, providerOptions } = part
    if (type !== 'tool-call') return []
    const args = (typeof input === 'string' ? JSON.parse(input || '{}') : input) as JsonObject
    const metadata = providerOptions && { metadata: providerOptions }
    return [{ toolCallId, toolName, arguments: args ?? {}, ...metadata }]
  })
  return new AssistantMessage(content, calls.length > 0 ? calls : undefined, options)
}

function fromResult({ toolCallId = '', toolName = '', output }: AiSdkPart) {
  const { type = 'text', value, reason } = output ?? {}
  const isError = type.startsWith('error') || type === 'execution-denied'
  const result =
    type === 'content'
      ? (value as readonly AiSdkPart[]).map(fromPart)
      : type === 'execution-denied'
        ? (reason ?? 'The call was denied.')
        : value
  return present({ toolCallId, toolName, result, isError: isError || undefined })
}

/** Converts a text or a file of a prompt. */
function fromPart(part: AiSdkPart): UserContent {
  const { type, text = '', data, mediaType = '', filename, providerOptions } = part
  const metadata = providerOptions && { metadata: providerOptions }
  if (type === 'text') return { type: 'text', text, ...metadata }
  const given =
    data instanceof URL
      ? data
      : typeof data === 'object' && 'type' in data
        ? data.type === 'url'
          ? data.url
          : data.type === 'text'
            ? new TextEncoder().encode(data.text)
            : data.data
        : data
  const kind = mediaType.split('/')[0]
  const common = { mimeType: mediaType, ...metadata }
  if ((kind === 'audio' || kind === 'video') && !(given instanceof URL)) {
    const bytes = typeof given === 'string' ? decodeLooseBase64(given) : given!
    return { type: kind, data: bytes, ...common }
  }
  const base64 = (data: string | Uint8Array = ''): string =>
    typeof data === 'string' ? strictBase64(data) : encodeBase64(data)
  const source =
    given instanceof URL
      ? ({ type: 'url', url: given.href } as const)
      : ({ type: 'base64', data: base64(given) } as const)
  if (kind === 'image') return { type: 'image', source, ...common }
  return present({ type: 'document', source, title: filename, ...common })
}

function toAnswer(turn: Turn, dropped: readonly AiSdkWarning[]): AiSdkAnswer {
  const { response, usage, stopReason, rawStopReason, warnings } = turn
  const content = response.content.flatMap((block): AiSdkAnswerPart[] => {
    const metadata = block.metadata && { providerMetadata: block.metadata }
    if (block.type === 'text' || block.type === 'reasoning')
      return [{ type: block.type, text: block.text, ...metadata }]
    return []
  })
  const calls = (response.toolCalls ?? []).map(toCall)
  return {
    content: [...content, ...turn.sources.flatMap(toSource), ...calls],
    finishReason: { unified: finishReasons[stopReason] ?? 'other', raw: rawStopReason },
    usage: toAiSdkUsage(usage),
    warnings: [...dropped, ...warnings.map(({ message }) => ({ type: 'other', message }))],
  }
}

function toCall({ toolCallId, toolName, arguments: args, metadata }: ToolCall): AiSdkAnswerPart {
  const input = JSON.stringify(args)
  const more = metadata && { providerMetadata: metadata }
  return { type: 'tool-call', toolCallId, toolName, input, ...more }
}

/** Converts events to the parts of an AI SDK stream. A failure becomes a part too, of type `error`. */
async function* toParts(
  turn: AsyncGenerator<readonly StreamEvent[], Turn>,
  dropped: readonly AiSdkWarning[],
): AsyncGenerator<AiSdkAnswerPart, undefined> {
  yield { type: 'stream-start', warnings: dropped }
  const kinds = new Map<number, string>()
  const calls = new Map<number, string>()
  try {
    for (;;) {
      const step = await turn.next()
      if (step.done) {
        for (const source of step.value.sources) yield* toSource(source)
        for (const call of step.value.response.toolCalls ?? []) yield toCall(call)
        const { finishReason, usage } = toAnswer(step.value, [])
        yield { type: 'finish', finishReason, usage }
        return undefined
      }
      for (const event of step.value) {
        const id = String(event.index)
        switch (event.type) {
          case 'content_block_start': {
            const { block, toolCallId = '', toolName = '' } = event.delta
            const kind = block === 'object' ? 'text' : block
            kinds.set(event.index, kind)
            if (kind === 'text' || kind === 'reasoning') yield { type: `${kind}-start`, id }
            if (kind !== 'tool_call') break
            calls.set(event.index, toolCallId)
            yield { type: 'tool-input-start', id: toolCallId, toolName }
            break
          }
          case 'text_delta':
          case 'object_delta':
            yield { type: 'text-delta', id, delta: event.delta.text }
            break
          case 'reasoning_delta':
            yield { type: 'reasoning-delta', id, delta: event.delta.text }
            break
          case 'tool_call_delta': {
            const { toolCallId, argumentsJson: delta } = event.delta
            yield { type: 'tool-input-delta', id: toolCallId, delta }
            break
          }
          case 'content_block_stop': {
            const kind = kinds.get(event.index)
            const more = event.delta.metadata && { providerMetadata: event.delta.metadata }
            if (kind === 'text' || kind === 'reasoning') yield { type: `${kind}-end`, id, ...more }
            if (kind === 'tool_call') yield { type: 'tool-input-end', id: calls.get(event.index)! }
            break
          }
          default:
            break // media and the frame of the message have no part of their own
        }
      }
    }
  } catch (error) {
    yield { type: 'error', error }
    return undefined
  } finally {
    await turn.return(undefined as never)
  }
}
