import { encodeBase64, isPlainObject, type JsonObject, type JsonValue } from '@skein/base'
import type {
  AssistantContent,
  DocumentBlock,
  ImageBlock,
  UserContent,
} from '../../contract/content.ts'
import type { UPPError } from '../../contract/error.ts'
import { contentOf, type Message } from '../../contract/message.ts'
import type { LLMRequest, Params } from '../../contract/provider.ts'
import { resultText } from '../../contract/result-text.ts'
import type { ToolCall, ToolResult } from '../../contract/tool.ts'
import type { Warning } from '../../contract/turn.ts'
import { orderedBlocks } from '../block-order.ts'
import { takeContinuation } from '../continuation.ts'
import { encodeHistory, listRequest } from '../encode-history.ts'
import { encodeOnce } from '../encode-once.ts'
import { toGoogleSchema, toolSchema } from '../google-schema.ts'
import {
  bytesSource,
  documentSource,
  imageSource,
  type MediaSource,
  refuseForeign,
  uploadOf,
} from '../media.ts'
import { mergeTools } from '../merge-tools.ts'
import { droppedBlock, foreignReasoning, nativeOf, optionsOf } from '../metadata.ts'
import { replacedFields } from '../replaced-fields.ts'
import type { EncodedRequest, RequestMode, Target } from '../wire.ts'
import { API, contentTypes, type InteractionsDialect, type InteractionStep } from './types.ts'

/**
 * Writes a request of `POST /interactions`. The whole conversation is sent as steps, so the vendor needs no state;
 * `previous_interaction_id` and `store` are sent only if they are among the parameters.
 */
export function encodeRequest(
  request: LLMRequest,
  target: Target<InteractionsDialect>,
  mode: RequestMode,
): EncodedRequest {
  const { params, system, structure } = request
  const { provider, modelId } = target
  const warnings: Warning[] = [...replacedFields(params, { input: true, model: true })]
  const continued = takeContinuation(request.messages, provider, 'continuation_token')
  const tools = mergeTools({
    provider,
    tools: request.tools.map((tool) => ({
      type: 'function',
      name: tool.name,
      description: tool.description,
      parameters: toolSchema(tool.parameters) as JsonObject, // a JSON Schema is JSON
      ...optionsOf(tool.metadata, provider),
    })),
    native: params['tools'],
    namesOf: (tool) => (tool['type'] === 'function' ? [tool['name']] : []),
  })
  const fields: Record<string, unknown> = {
    // An agent is asked instead of a model.
    model: params['agent'] === undefined ? modelId.replace(/^models\//, '') : undefined,
    stream: mode === 'stream' ? true : undefined,
    continuation_token: continued.token,
    // Fields that the caller set override those of `structure`.
    response_format: structure && {
      type: 'text',
      mime_type: 'application/json',
      schema: toGoogleSchema(structure, warnings),
    },
    ...topLevel(params),
    generation_config: generationConfigOf(params),
    tools,
  }
  if (system !== undefined) {
    // A `system_instruction` in the parameters is added after the `system` option.
    const ownInstruction = params['system_instruction']
    fields['system_instruction'] =
      typeof ownInstruction === 'string' ? `${system}\n\n${ownInstruction}` : system
  }
  const key = `${API} ${provider}`
  const history = encodeHistory(
    continued.messages,
    key,
    (messages, found) =>
      messages.flatMap((message) =>
        encodeOnce(message, key, (own) => encodeSteps(message, { provider, warnings: own }), found),
      ),
    warnings,
  )
  return listRequest(fields, 'input', { history }, { path: '/interactions', warnings })
}

/**
 * Parameters that the API reads in `generation_config`; callers may set them there or directly in `params`. All
 * others are sent unchanged at the top of the body. (From the public types of November 2026.)
 */
const generationFields = new Set([
  'image_config',
  'max_output_tokens',
  'seed',
  'speech_config',
  'stop_sequences',
  'temperature',
  'thinking_level',
  'thinking_summaries',
  'tool_choice',
  'top_p',
  'transcription_config',
  'video_config',
])

function topLevel(params: Params): Record<string, unknown> {
  return Object.fromEntries(Object.entries(params).filter(([key]) => !generationFields.has(key)))
}

/** Returns the caller's `generation_config`, completed with fields that were given directly in `params`. */
function generationConfigOf(params: Params): object | undefined {
  const loose = Object.entries(params).filter(([key]) => generationFields.has(key))
  const ownParams = params['generation_config'] as object | undefined
  return loose.length === 0 ? ownParams : { ...Object.fromEntries(loose), ...ownParams }
}

interface EncodeOptions {
  readonly provider: string
  readonly warnings: Warning[]
}

function encodeSteps(message: Message, options: EncodeOptions): readonly InteractionStep[] {
  const { provider } = options
  switch (message.type) {
    case 'user': {
      // The API refuses an empty text.
      const content = message.content
        .filter((block) => block.type !== 'text' || block.text !== '')
        .map((block) => encodeUserBlock(block, options))
      return content.length > 0 ? [{ type: 'user_input', content }] : []
    }
    case 'assistant': {
      // Thoughts without a signature have no metadata, so the message's metadata decides whether they
      // are from this vendor.
      const isOwn = message.metadata?.[provider]?.['api'] === API
      const steps: InteractionStep[] = []
      let content: JsonObject[] = []
      for (const { block, call } of orderedBlocks(message, provider)) {
        const item = call ? encodeCall(call, provider) : encodeBlock(block, isOwn, options)
        if (!item) continue
        if (!contentTypes.has(item['type'])) {
          content = []
          steps.push(item)
          continue
        }
        // Neighbouring pieces of content are one step.
        if (content.length === 0) steps.push({ type: 'model_output', content })
        content.push(item)
      }
      return steps
    }
    case 'tool_result':
      return message.results.map((result) => encodeResult(result, provider))
    default:
      return message satisfies never
  }
}

function encodeUserBlock(block: UserContent, { provider, warnings }: EncodeOptions): JsonObject {
  const more = optionsOf(block.metadata, provider)
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text, ...more }
    case 'image':
      return { ...(uploaded(block, provider) ?? media('image', imageSource(block))), ...more }
    case 'document': {
      if (block.title !== undefined) {
        const message = `The title of a document (${block.title}) cannot be sent to ${provider}.`
        warnings.push({ code: 'unsupported_field', message })
      }
      const upload = uploaded(block, provider)
      if (upload) return { ...upload, ...more }
      const source = documentSource(block)
      if (!('text' in source)) return { ...media('document', source), ...more }
      // A document given as text is sent as a file of its type.
      const base64 = encodeBase64(new TextEncoder().encode(source.text))
      const mimeType = source.mimeType || 'text/plain'
      return { ...media('document', { base64, mimeType }), ...more }
    }
    case 'audio':
    case 'video':
      return { ...media(block.type, bytesSource(block)), ...more }
    case 'binary':
      return { ...media('document', bytesSource(block)), ...more }
    default:
      return block satisfies never
  }
}

/** See `Wire.refuse`. Other types of files than the API documents are left to it to judge: they are many. */
export function refuse(
  block: UserContent,
  { provider }: Target<InteractionsDialect>,
): UPPError | undefined {
  const isAddressed = block.type === 'image' || block.type === 'document'
  return isAddressed ? refuseForeign(block, provider) : undefined
}

function encodeBlock(
  block: AssistantContent,
  isOwn: boolean,
  { provider, warnings }: EncodeOptions,
): JsonObject | undefined {
  const native = nativeOf(block.metadata, provider, API)
  switch (block.type) {
    case 'text':
      return block.text === '' && !native
        ? undefined
        : { type: 'text', text: block.text, ...native }
    case 'reasoning': {
      if (isOwn || native) {
        const summary = block.text === '' ? undefined : [{ type: 'text', text: block.text }]
        // What the vendor said in another form than one text is in `native` and replaces the text.
        return { type: 'thought', summary, ...native }
      }
      warnings.push(foreignReasoning)
      return undefined
    }
    case 'native':
      if (!native) warnings.push(droppedBlock(block, provider))
      return native
    case 'image':
      return { ...media('image', imageSource(block)), ...native }
    case 'audio':
    case 'video':
      return { ...media(block.type, bytesSource(block)), ...native }
    default:
      return block satisfies never
  }
}

function encodeCall(call: ToolCall, provider: string): InteractionStep {
  return {
    type: 'function_call',
    id: call.toolCallId,
    name: call.toolName,
    arguments: call.arguments,
    ...nativeOf(call.metadata, provider, API),
  }
}

function encodeResult(result: ToolResult, provider: string): InteractionStep {
  return {
    type: 'function_result',
    call_id: result.toolCallId,
    name: result.toolName,
    result: encodeOutput(result, provider),
    is_error: result.isError === true ? true : undefined,
    ...optionsOf(result.metadata, provider),
  }
}

/**
 * Writes what a tool returned: content as a list of contents, an object as it is, a text as a text. The API would read
 * any other list as a list of contents, so lists, numbers and the like are written as JSON text.
 */
function encodeOutput({ result }: ToolResult, provider: string): JsonValue {
  const blocks = contentOf(result)
  if (blocks.length > 0) {
    const ignored: Warning[] = [] // titles of documents in results
    return blocks.map((block) => encodeUserBlock(block, { provider, warnings: ignored }))
  }
  const text = typeof result === 'string' ? result : resultText(result)
  return isPlainObject(result) ? jsonOf(text) : text
}

/** Returns the object of a JSON text. Values that JSON cannot express (bytes, cycles) made it another text. */
function jsonOf(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return text
  }
}

type MediaType = 'image' | 'audio' | 'video' | 'document'

/** Writes media as inline data or as an address. */
export function media(type: MediaType, { base64, url, mimeType }: MediaSource): JsonObject {
  return url === undefined
    ? { type, data: base64, mime_type: mimeType }
    : { type, uri: url, mime_type: mimeType }
}

/** Writes a file that was uploaded to Google, by its name (`files/abc`) or address; undefined for any other block. */
function uploaded(block: ImageBlock | DocumentBlock, provider: string): JsonObject | undefined {
  const id = uploadOf(block, provider)
  if (id === undefined) return undefined
  const uri = /^\w+:/.test(id) ? id : `https://generativelanguage.googleapis.com/v1beta/${id}`
  return { type: block.type, uri, mime_type: block.mimeType }
}
