import type { AssistantContent } from '../contract/content.ts'
import type { StreamEvent } from '../contract/event.ts'
import type { ToolCall } from '../contract/tool.ts'
import type { Turn, Warning } from '../contract/turn.ts'
import { toProviderMetadata } from './provider-options.ts'
import {
  type AiSdkAnswerPart,
  type AiSdkData,
  type AiSdkUsage,
  type AiSdkWarning,
  finishReasons,
  toAiSdkUsage,
  toSource,
} from './types.ts'

/** What is known of the vendor's response. */
export interface AiSdkResponse {
  id?: string
  modelId?: string
  headers?: Readonly<Record<string, string>>
}

/** A whole answer, as the AI SDK expects it. */
export interface AiSdkAnswer {
  readonly content: readonly AiSdkAnswerPart[]
  readonly finishReason: NonNullable<AiSdkAnswerPart['finishReason']>
  readonly usage: AiSdkUsage
  readonly providerMetadata?: AiSdkAnswerPart['providerMetadata']
  readonly response: AiSdkResponse
  readonly warnings: readonly AiSdkWarning[]
}

/** Notes the id and the model of the response from the start of the message. */
export function noteStart(response: AiSdkResponse, events: readonly StreamEvent[]): void {
  for (const event of events) {
    if (event.type !== 'message_start') continue
    const { id, model } = event.delta
    if (id !== undefined) response.id = id
    if (model !== undefined) response.modelId = model
  }
}

/** Converts a turn. `textOf` returns the text of a block as the caller's schema describes it. */
export function toAnswer(
  turn: Turn,
  {
    dropped,
    response,
    textOf = (text) => text,
  }: {
    readonly dropped: readonly AiSdkWarning[]
    readonly response: AiSdkResponse
    readonly textOf?: (text: string) => string
  },
): AiSdkAnswer {
  const content = turn.response.content.flatMap((block) => toPart(block, textOf))
  const calls = (turn.response.toolCalls ?? []).map(toCall)
  return {
    content: [...content, ...turn.sources.flatMap(toSource), ...calls],
    ...toFinish(turn),
    response,
    warnings: [...dropped, ...unsaid(turn.warnings).map(({ message }) => ({ type: 'other', message }))], // prettier-ignore
  }
}

/** The warnings that the call's own do not already say. */
function unsaid(warnings: readonly Warning[]): readonly Warning[] {
  return warnings.filter(({ code }) => code !== 'setting_dropped')
}

function toPart(block: AssistantContent, textOf: (text: string) => string): AiSdkAnswerPart[] {
  const metadata = toProviderMetadata(block.metadata)
  const more = metadata && { providerMetadata: metadata }
  switch (block.type) {
    case 'text':
      return [{ type: 'text', text: textOf(block.text), ...more }]
    case 'reasoning':
      return [{ type: 'reasoning', text: block.text, ...more }]
    case 'image': {
      const { source, mimeType: mediaType } = block
      const data: AiSdkData =
        source.type === 'url'
          ? { type: 'url', url: new URL(source.url) }
          : { type: 'data', data: source.data }
      return [{ type: 'file', mediaType, data, ...more }]
    }
    case 'audio':
    case 'video':
      return [{ type: 'file', mediaType: block.mimeType, data: { type: 'data', data: block.data }, ...more }] // prettier-ignore
    case 'native':
      return []
    default:
      return block satisfies never
  }
}

function toFinish(turn: Turn): Pick<AiSdkAnswer, 'finishReason' | 'usage' | 'providerMetadata'> {
  const { usage, stopReason, rawStopReason, response } = turn
  const metadata = toProviderMetadata(response.metadata)
  return {
    finishReason: { unified: finishReasons[stopReason] ?? 'other', raw: rawStopReason },
    usage: toAiSdkUsage(usage),
    ...(metadata && { providerMetadata: metadata }),
  }
}

function toCall({ toolCallId, toolName, arguments: args, metadata }: ToolCall): AiSdkAnswerPart {
  const input = JSON.stringify(args)
  const own = toProviderMetadata(metadata)
  return { type: 'tool-call', toolCallId, toolName, input, ...(own && { providerMetadata: own }) }
}

/** Returns the last parts of a stream: what is known only at the end of an answer. */
export function* toLastParts(turn: Turn): Generator<AiSdkAnswerPart> {
  for (const source of turn.sources) yield* toSource(source)
  for (const call of turn.response.toolCalls ?? []) yield toCall(call)
  const finish = toFinish(turn)
  const warnings = unsaid(turn.warnings).map(({ code, message }) => ({ code, message }))
  // The warnings of a stream come before it, so those of the answer itself have their place here.
  const providerMetadata =
    warnings.length > 0 ? { ...finish.providerMetadata, skein: { warnings } } : undefined
  yield { type: 'finish', ...finish, ...(providerMetadata && { providerMetadata }) }
}
