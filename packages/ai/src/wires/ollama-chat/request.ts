import type { JsonObject, JsonSchema } from '@skein/base'
import type { TextBlock, UserContent } from '../../contract/content.ts'
import type { UPPError } from '../../contract/error.ts'
import { contentOf, type AssistantMessage, type Message } from '../../contract/message.ts'
import type { LLMRequest } from '../../contract/provider.ts'
import type { ToolCall, ToolResult } from '../../contract/tool.ts'
import type { Warning } from '../../contract/turn.ts'
import { encodeHistory, type ListItems, listRequest } from '../encode-history.ts'
import { encodeOnce } from '../encode-once.ts'
import { resultKey, resultKeys } from '../result-key.ts'
import { imageSource, parseDataUrl, uploadedError } from '../media.ts'
import { droppedBlock, foreignReasoning, nativeOf, optionsOf } from '../metadata.ts'
import { objectOf, without } from '../read-json.ts'
import { replacedFields } from '../replaced-fields.ts'
import { unenforced } from '../rewrite-schema.ts'
import { mergeTools } from '../merge-tools.ts'
import { resultText } from '../../contract/result-text.ts'
import { requestError } from '../wire-error.ts'
import type { EncodedRequest, RequestMode, Target } from '../wire.ts'
import { API, type OllamaDialect, type OllamaMessage } from './types.ts'

/** Model options, which the server reads only inside `options`. */
const modelOptions = new Set([
  'frequency_penalty',
  'min_p',
  'mirostat',
  'mirostat_eta',
  'mirostat_tau',
  'num_batch',
  'num_ctx',
  'num_gpu',
  'num_keep',
  'num_predict',
  'num_thread',
  'presence_penalty',
  'repeat_last_n',
  'repeat_penalty',
  'seed',
  'stop',
  'temperature',
  'tfs_z',
  'top_k',
  'top_p',
  'typical_p',
])

/**
 * Writes a request of `POST /chat`. Parameters are copied to the top of the body (`think`, `format`,
 * `keep_alive`, `logprobs`, …); callers put sampling options inside `options`, as in the API. `stream`
 * is always sent, because the server streams by default.
 */
export function encodeRequest(
  request: LLMRequest,
  { provider, modelId }: Target<OllamaDialect>,
  mode: RequestMode,
): EncodedRequest {
  const { params, structure } = request
  // The server silently ignores options at the top of the body, so a warning names them.
  const warnings: Warning[] = Object.keys(params)
    .filter((name) => modelOptions.has(name))
    .map((name) => ({
      code: 'misplaced_parameter',
      message: `The server ignores "${name}" outside of options: write params: { options: { ${name} } }.`,
      pointer: `/params/${name}`,
    }))
  warnings.push(
    ...replacedFields(params, {
      model: params['model'] !== modelId,
      messages: true,
    }),
  )
  if (structure && params['format'] === undefined)
    warnings.push(...unenforced(structure, 'Ollama', isEnforced))
  const tools = mergeTools({
    provider,
    tools: request.tools.map(({ name, description, parameters, metadata }) => ({
      type: 'function',
      function: {
        name,
        description,
        parameters: parameters as JsonObject, // a JSON Schema is JSON
        ...optionsOf(metadata, provider),
      },
    })),
    native: params['tools'],
    namesOf: (tool) => [objectOf(tool['function'])?.['name']],
  })
  const fields: Record<string, unknown> = {
    model: modelId,
    format: structure,
    ...params,
    tools,
    stream: mode === 'stream',
  }
  const items = encodeMessages(request, provider, warnings)
  return listRequest(fields, 'messages', items, { path: '/chat', warnings })
}

/** The keywords that Ollama enforces: it makes a llama.cpp grammar of a schema (llama.cpp, grammars/README, 2026). */
const enforced = new Set(
  `type enum const anyOf oneOf allOf $ref properties required additionalProperties items prefixItems
  additionalItems minItems maxItems minLength maxLength pattern`.split(/\s+/),
)
const formats = new Set(['date', 'time', 'date-time', 'uuid'])

function isEnforced(keyword: string, { type, format, pattern }: JsonSchema): boolean {
  if (/m(in|ax)imum$/i.test(keyword)) return type === 'integer'
  if (keyword === 'format') return formats.has(String(format))
  return keyword === 'pattern' ? /^\^.*\$$/s.test(String(pattern)) : enforced.has(keyword)
}

/** Writes all messages, with the system prompt first. */
function encodeMessages(request: LLMRequest, provider: string, warnings: Warning[]): ListItems {
  const { system, messages } = request
  const keys = resultKeys(`${API} ${provider}`)
  const isMarked = ({ metadata }: ToolCall): boolean =>
    nativeOf(metadata, provider, API)?.['id'] !== undefined
  const encodeAll = (list: readonly Message[], found: Warning[]): string[] => {
    let before: AssistantMessage | undefined
    return list.flatMap((message) => {
      if (message.type === 'assistant') before = message
      const key =
        message.type === 'tool_result' ? resultKey(message, before, keys, isMarked) : keys.plain
      const calls = before?.toolCalls ?? []
      const encode = (own: Warning[]): readonly JsonObject[] => {
        // Each tool result becomes a separate message.
        const options = { provider, calls, warnings: own }
        switch (message.type) {
          case 'user':
            return [{ role: 'user', ...encodeContent(message.content, options) }]
          case 'assistant':
            return encodeAssistant(message, options)
          case 'tool_result':
            return message.results.map((result) => encodeResult(result, options))
          default:
            return message satisfies never
        }
      }
      return encodeOnce(message, key, encode, found)
    })
  }
  const history = encodeHistory(messages, keys.plain, encodeAll, warnings)
  if (system === undefined) return { history }
  return { first: JSON.stringify({ role: 'system', content: system }), history }
}

interface EncodeOptions {
  readonly provider: string
  /** The calls of the preceding assistant message, which the results answer. */
  readonly calls: readonly ToolCall[]
  readonly warnings: Warning[]
}

/** Writes content as one text and a list of images, because a message can contain nothing else. */
function encodeContent(
  blocks: readonly UserContent[],
  { provider }: EncodeOptions,
): { content: string; images?: string[] } {
  const texts: string[] = []
  const images: string[] = []
  for (const block of blocks) {
    switch (block.type) {
      case 'text':
        texts.push(block.text)
        break
      case 'image': {
        const { base64, url } = imageSource(block)
        if (base64 === undefined) throw addressError(url, provider)
        images.push(base64)
        break
      }
      case 'document':
      case 'audio':
      case 'video':
      case 'binary':
        throw kindError(block, provider)
      default:
        block satisfies never
    }
  }
  return { content: texts.join('\n'), images: images.length > 0 ? images : undefined }
}

function addressError(url: string, provider: string): UPPError {
  return requestError(
    provider,
    `${provider} takes images as data, not by address (${url.slice(0, 200)}).`,
    'Download the image first and give its bytes or base64.',
  )
}

function kindError(
  { type, mimeType }: Exclude<UserContent, TextBlock>,
  provider: string,
): UPPError {
  return requestError(
    provider,
    `A ${type} block (${mimeType}) cannot be sent to ${provider}.`,
    'It takes text and images.',
  )
}

/** See `Wire.refuse`. */
export function refuse(block: UserContent, { provider }: Target): UPPError | undefined {
  if (block.type === 'text') return undefined
  if (block.type !== 'image') return kindError(block, provider)
  if (block.source.type !== 'url' || parseDataUrl(block.source.url)) return undefined
  return uploadedError(block.source.url) ?? addressError(block.source.url, provider)
}

const functionKey = new Set(['function'])

function encodeAssistant(
  message: AssistantMessage,
  { provider, warnings }: EncodeOptions,
): readonly OllamaMessage[] {
  const isOwn = message.metadata?.[provider]?.['api'] === API
  let content = ''
  let thinking = ''
  for (const block of message.content) {
    switch (block.type) {
      case 'text':
        content += block.text
        break
      case 'reasoning':
        if (isOwn) thinking += block.text
        else warnings.push(foreignReasoning)
        break
      case 'image':
      case 'audio':
      case 'video':
      case 'native':
        warnings.push(droppedBlock(block, provider))
        break
      default:
        block satisfies never
    }
  }
  const calls = (message.toolCalls ?? []).map((call) => {
    const native = nativeOf(call.metadata, provider, API) ?? {}
    const { toolName: name, arguments: args } = call
    return {
      ...without(native, functionKey),
      function: { ...objectOf(native['function']), name, arguments: args },
    }
  })
  if (content === '' && thinking === '' && calls.length === 0) return []
  return [
    {
      role: 'assistant',
      content,
      thinking: thinking || undefined,
      tool_calls: calls.length > 0 ? calls : undefined,
    },
  ]
}

/** Writes a result. The server matches it to its call by tool name, and by id if the server sent an id. */
function encodeResult(result: ToolResult, options: EncodeOptions): OllamaMessage {
  const { provider, calls } = options
  const call = calls.find(({ toolCallId }) => toolCallId === result.toolCallId)
  const blocks = contentOf(result.result).map((block) => showable(block, options))
  const { content, images } =
    blocks.length > 0
      ? encodeContent(blocks, options)
      : { content: resultText(result.result), images: undefined }
  return {
    role: 'tool',
    // The format has no error flag, so the text begins with "Error:".
    content: result.isError === true ? `Error: ${content}` : content,
    images,
    tool_name: call?.toolName ?? result.toolName ?? result.toolCallId,
    tool_call_id: nativeOf(call?.metadata, provider, API)?.['id'],
  }
}

/** Replaces a block of a tool result that cannot be sent with a text that says so. */
function showable(block: UserContent, { provider, warnings }: EncodeOptions): UserContent {
  switch (block.type) {
    case 'text':
      return block
    case 'image':
      if (block.source.type !== 'url' || parseDataUrl(block.source.url)) return block
      break
    case 'document':
      if (block.source.type === 'text') return { type: 'text', text: block.source.data }
      break
    case 'audio':
    case 'video':
    case 'binary':
      break
    default:
      return block satisfies never
  }
  const message = `The ${block.type} that a tool returned cannot be sent to ${provider}.`
  warnings.push({ code: 'unsupported_block', message })
  return { type: 'text', text: `[${block.type}, ${block.mimeType}: not shown]` }
}
