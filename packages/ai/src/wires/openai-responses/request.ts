import type { JsonObject } from '@skein/base'
import type { LLMRequest } from '../../contract/provider.ts'
import type { Tool } from '../../contract/tool.ts'
import type { Warning } from '../../contract/turn.ts'
import { encodeHistory } from '../encode-history.ts'
import { bodyText, dialectKey, encodeOnce } from '../encode-once.ts'
import { mergeTools } from '../native-tools.ts'
import { namedSchema, notStrict, openaiSchemas } from '../openai-schema.ts'
import { objectOf, textOf } from '../read-json.ts'
import { toDialect } from '../schema-dialect.ts'
import { optionsOf } from '../wire-options.ts'
import type { EncodedRequest, RequestMode, Target } from '../wire.ts'
import { encodeAssistant } from './assistant.ts'
import type { OpenAIResponsesDialect } from './dialect.ts'
import { customCallIds, encodeToolResults } from './tool-results.ts'
import { encodeUser } from './user.ts'

export type ResponsesTarget = Target<OpenAIResponsesDialect>

/** Writes a request of `POST /responses`. */
export function encodeRequest(
  request: LLMRequest,
  target: ResponsesTarget,
  mode: RequestMode,
): EncodedRequest {
  const warnings: Warning[] = []
  const { params, system } = request
  const fields = {
    model: target.modelId,
    ...(system && { instructions: system }),
    ...params,
    ...textField(request, warnings),
    // The one field that params cannot change: the answer could not be read otherwise.
    ...(mode === 'stream' ? { stream: true } : 'stream' in params && { stream: false }),
    ...toolFields(request, target),
  }
  const input = encodeInput(request, target, warnings)
  return { body: bodyText(fields, 'input', input), path: '/responses', warnings }
}

/** `structure` joins what the caller put in `params.text`; a format of the caller's own stands. */
function textField({ structure, params }: LLMRequest, warnings: Warning[]): object {
  const text = objectOf(params['text'])
  if (!structure || text?.['format'] !== undefined) return {}
  const { schema, isStrict } = toDialect(structure, openaiSchemas)
  if (!isStrict) warnings.push(notStrict)
  return { text: { ...text, format: { type: 'json_schema', ...namedSchema(schema, isStrict) } } }
}

/** True when the answer comes as `{ value: … }`, see `toDialect`. */
export function isWrapped({ structure, params }: LLMRequest): boolean {
  if (!structure || objectOf(params['text'])?.['format'] !== undefined) return false
  return toDialect(structure, openaiSchemas).isWrapped
}

function toolFields({ tools, params }: LLMRequest, { provider }: ResponsesTarget): object {
  const merged = mergeTools({
    provider,
    tools: tools.map((tool) => encodeTool(tool, provider)),
    native: params['tools'],
    namesOf: (tool) => [textOf(tool['name'])].filter((name) => name !== undefined),
  })
  return merged ? { tools: merged } : {}
}

/**
 * Metadata of the tool for this vendor joins its definition, e.g. `{ strict: true }`. The API
 * takes a missing `strict` for true and then changes the schema; false sends it as it is.
 */
export function encodeTool(tool: Tool, provider: string): JsonObject {
  const { name, description } = tool
  const { type, ...options } = optionsOf(tool.metadata, provider) ?? {}
  if (type === 'custom') return { type: 'custom', name, description, ...options }
  // The schema is JSON by its type's contract, which `unknown` values cannot say.
  const parameters = tool.parameters as JsonObject
  return { type: 'function', name, description, parameters, strict: false, ...options }
}

function encodeInput(request: LLMRequest, target: ResponsesTarget, warnings: Warning[]): string {
  const mayBeStored = request.params['store'] !== false
  const key = `openai-responses ${target.provider} ${dialectKey(target.dialect)} ${mayBeStored}`
  return encodeHistory(
    request.messages,
    key,
    (messages, found) => {
      let customIds: readonly string[] = []
      return messages.flatMap((message) => {
        if (message.type === 'assistant') customIds = customCallIds(message, target.provider)
        const known = customIds
        const encode = (told: Warning[]): readonly JsonObject[] => {
          if (message.type === 'user') return [encodeUser(message, target)]
          if (message.type === 'assistant')
            return encodeAssistant(message, target, mayBeStored, told)
          return encodeToolResults(message, target, known)
        }
        const itsKey = known.length > 0 ? `${key} ${known.join()}` : key
        return encodeOnce(message, itsKey, encode, found)
      })
    },
    warnings,
  )
}
