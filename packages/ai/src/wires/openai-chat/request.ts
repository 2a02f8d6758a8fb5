import type { JsonObject } from '@skein/base'
import type { Message } from '../../contract/message.ts'
import type { LLMRequest } from '../../contract/provider.ts'
import type { Tool } from '../../contract/tool.ts'
import type { Warning } from '../../contract/turn.ts'
import { encodeHistory } from '../encode-history.ts'
import { bodyText, dialectKey, encodeOnce } from '../encode-once.ts'
import { mergeTools } from '../native-tools.ts'
import { objectOf, textOf } from '../read-json.ts'
import { optionsOf } from '../wire-options.ts'
import type { EncodedRequest, RequestMode, Target } from '../wire.ts'
import { encodeAssistant } from './assistant.ts'
import type { OpenAIChatDialect } from './dialect.ts'
import { chatStructure, type ChatStructure } from './structure.ts'
import { encodeToolResults } from './tool-results.ts'
import { encodeUser } from './user.ts'

export type ChatTarget = Target<OpenAIChatDialect>

/** Writes a request of `POST /chat/completions`. */
export function encodeRequest(
  request: LLMRequest,
  target: ChatTarget,
  mode: RequestMode,
): EncodedRequest {
  const structure = chatStructure(request, target.dialect)
  const warnings: Warning[] = [...structure.warnings]
  const fields = {
    model: target.modelId,
    ...structure.fields,
    ...request.params,
    ...streamFields(request, target, mode),
    ...toolFields(request, target),
  }
  const messages = encodeMessages(request, target, structure, warnings)
  return { body: bodyText(fields, 'messages', messages), path: '/chat/completions', warnings }
}

/** `stream` is the one field that params cannot change: the answer could not be read otherwise. */
function streamFields(request: LLMRequest, target: ChatTarget, mode: RequestMode): object {
  if (mode === 'stream') return { stream: true, ...usageOptions(request, target) }
  return 'stream' in request.params ? { stream: false } : {}
}

/** Usage in a stream comes only when asked for; the caller's own options win. */
function usageOptions(request: LLMRequest, { dialect }: ChatTarget): object {
  if (!dialect.streamUsage) return {}
  const options = request.params['stream_options']
  return { stream_options: { include_usage: true, ...(options as object | undefined) } }
}

function toolFields({ tools, params }: LLMRequest, { provider }: ChatTarget): object {
  const merged = mergeTools({
    provider,
    tools: tools.map((tool) => encodeTool(tool, provider)),
    native: params['tools'],
    namesOf: (tool) => [toolName(tool)].filter((name) => name !== undefined),
  })
  return merged ? { tools: merged } : {}
}

function toolName(tool: JsonObject): string | undefined {
  const inner = objectOf(tool['function']) ?? objectOf(tool['custom']) ?? tool
  return textOf(inner['name'])
}

/** Metadata of the tool for this vendor joins its definition, e.g. `{ strict: true }`. */
export function encodeTool(tool: Tool, provider: string): JsonObject {
  const { name, description } = tool
  const { type, ...options } = optionsOf(tool.metadata, provider) ?? {}
  if (type === 'custom') return { type: 'custom', custom: { name, description, ...options } }
  // The schema is JSON by its type's contract, which `unknown` values cannot say.
  const parameters = tool.parameters as JsonObject
  return { type: 'function', function: { name, description, parameters, ...options } }
}

function encodeMessages(
  request: LLMRequest,
  target: ChatTarget,
  structure: ChatStructure,
  warnings: Warning[],
): string {
  const key = `openai-chat ${target.provider} ${dialectKey(target.dialect)}`
  const history = encodeHistory(
    request.messages,
    key,
    (messages, found) =>
      messages.flatMap((message) => {
        const encode = (told: Warning[]): readonly JsonObject[] =>
          encodeMessage(message, target, told)
        return encodeOnce(message, key, encode, found)
      }),
    warnings,
  )
  const prompt = [request.system, structure.instruction].filter(Boolean).join('\n\n')
  if (!prompt) return history
  const system = JSON.stringify({ role: target.dialect.systemRole, content: prompt })
  return history ? `${system},${history}` : system
}

function encodeMessage(
  message: Message,
  target: ChatTarget,
  warnings: Warning[],
): readonly JsonObject[] {
  switch (message.type) {
    case 'user':
      return [encodeUser(message, target)]
    case 'assistant':
      return [encodeAssistant(message, target, warnings)]
    case 'tool_result':
      return encodeToolResults(message, target, warnings)
    default:
      return message satisfies never
  }
}
