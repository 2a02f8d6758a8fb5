import type { JsonObject } from '@skein/base'
import { ToolResultMessage, type Message } from '../../contract/message.ts'
import type { LLMRequest, Params } from '../../contract/provider.ts'
import type { Tool, ToolCall } from '../../contract/tool.ts'
import type { Warning } from '../../contract/turn.ts'
import { bodyText, encodeOnce } from '../encode-once.ts'
import { mergeTools } from '../native-tools.ts'
import { listOf, objectOf, textOf } from '../read-json.ts'
import { resultKey, resultKeys } from '../result-key.ts'
import { repairTranscript } from '../transcript.ts'
import { optionsOf } from '../wire-options.ts'
import type { EncodedRequest, RequestMode, Target } from '../wire.ts'
import { generationConfigOf, topLevel } from './generation-config.ts'
import { encodeMessage } from './request-message.ts'
import { hasGeneratedId } from './request-result.ts'
import { API, type GoogleDialect } from './types.ts'

/** `POST /models/{id}:generateContent` or `:streamGenerateContent`. The key is never in the address. */
export function encodeRequest(
  request: LLMRequest,
  target: Target<GoogleDialect>,
  mode: RequestMode,
): EncodedRequest {
  const { params, system } = request
  const warnings: Warning[] = []
  const { messages, continuationToken } = takeContinuation(
    repairTranscript(request.messages, warnings),
    target.provider,
  )
  const tools = encodeTools(request, target.provider)
  const generationConfig = encodeGeneration(request)
  const fields = {
    ...(continuationToken !== undefined && { continuationToken }),
    ...topLevel(params),
    ...(system !== undefined && { systemInstruction: mergeSystem(system, params) }),
    ...(tools && { tools }),
    ...(generationConfig && { generationConfig }),
  }
  const contents = encodeContents(messages, target, warnings)
  const verb = mode === 'stream' ? 'streamGenerateContent?alt=sse' : 'generateContent'
  const path = `/${modelPath(target.modelId)}:${verb}`
  return { body: bodyText(fields, 'contents', contents.join(',')), path, warnings }
}

/** `gemini-x`, `models/gemini-x` and `tunedModels/x` all name a model. */
function modelPath(modelId: string): string {
  const path = modelId.split('/').map(encodeURIComponent).join('/')
  return path.includes('/') ? path : `models/${path}`
}

/**
 * An answer that ended with CONTINUATION is resumed by the same request with its token: what was
 * said so far is not repeated.
 */
function takeContinuation(
  messages: readonly Message[],
  provider: string,
): { messages: readonly Message[]; continuationToken?: string } {
  const tokenOf = (message: Message | undefined): string | undefined =>
    message?.type === 'assistant'
      ? textOf(message.metadata?.[provider]?.['continuationToken'])
      : undefined
  const continuationToken = tokenOf(messages.at(-1))
  if (continuationToken === undefined) return { messages }
  const end = messages.findLastIndex((message) => tokenOf(message) === undefined) + 1
  return { messages: messages.slice(0, end), continuationToken }
}

/** What the caller set; the structure fills its gaps. */
function encodeGeneration({ params, structure }: LLMRequest): object | undefined {
  const own = generationConfigOf(params)
  if (!structure || (own && ('responseJsonSchema' in own || 'responseSchema' in own))) return own
  return { responseMimeType: 'application/json', responseJsonSchema: structure, ...own }
}

/** A `systemInstruction` among the parameters follows the `system` option. */
function mergeSystem(system: string, params: Params): unknown {
  const given = objectOf(params['systemInstruction'])
  return { ...given, parts: [{ text: system }, ...listOf(given?.['parts'])] }
}

function encodeTools(
  { tools, params }: LLMRequest,
  provider: string,
): readonly unknown[] | undefined {
  const functionDeclarations = tools.map((tool) => encodeTool(tool, provider))
  return mergeTools({
    provider,
    tools: functionDeclarations.length > 0 ? [{ functionDeclarations }] : [],
    native: params['tools'],
    namesOf: (tool) => listOf(tool['functionDeclarations']).map((item) => objectOf(item)?.['name']),
  })
}

function encodeTool(
  { name, description, parameters, metadata }: Tool,
  provider: string,
): JsonObject {
  return {
    name,
    description,
    parametersJsonSchema: parameters as JsonObject, // a JSON Schema is JSON
    ...optionsOf(metadata, provider),
  }
}

function encodeContents(
  messages: readonly Message[],
  target: Target<GoogleDialect>,
  warnings: Warning[],
): string[] {
  const { provider, modelId, dialect } = target
  const unsigned = dialect.unsignedCall?.(modelId)
  const keys = resultKeys(`${API} ${provider} ${unsigned ?? ''}`)
  const isMarked = (call: ToolCall): boolean => hasGeneratedId(call, provider)
  const items: string[] = []
  let previous: Message | undefined
  for (const message of joinResults(messages)) {
    const before = previous?.type === 'assistant' ? previous : undefined
    const key =
      message.type === 'tool_result' ? resultKey(message, before, keys, isMarked) : keys.plain
    const calls = before?.toolCalls ?? []
    const encode = (found: Warning[]): readonly JsonObject[] =>
      encodeMessage(message, { provider, unsigned, calls, warnings: found })
    for (const item of encodeOnce(message, key, encode, warnings)) items.push(item)
    previous = message
  }
  return items
}

/** All results of a step must stand in one entry, as many as there were calls. */
function joinResults(messages: readonly Message[]): readonly Message[] {
  const isSplit = messages.some(
    ({ type }, index) => type === 'tool_result' && messages[index + 1]?.type === 'tool_result',
  )
  if (!isSplit) return messages
  const joined: Message[] = []
  for (const message of messages) {
    const last = joined.at(-1)
    if (message.type !== 'tool_result' || last?.type !== 'tool_result') joined.push(message)
    else {
      const results = [...last.results, ...message.results]
      joined[joined.length - 1] = new ToolResultMessage(results, { id: last.id })
    }
  }
  return joined
}
