import { decodeBase64, type JsonObject, type JsonValue } from '@skein/base'
import type { AssistantContent, UserContent } from '../../contract/content.ts'
import { fileAddress } from '../../media/vendor-file.ts'
import {
  AssistantMessage,
  ToolResultMessage,
  UserMessage,
  type Message,
} from '../../contract/message.ts'
import { parseArguments } from '../../contract/parse-arguments.ts'
import type { ToolCall, ToolResult } from '../../contract/tool.ts'
import { audioMimeType, parseDataUrl } from '../media.ts'
import { optionsMetadata, withNative } from '../metadata.ts'
import { isEmpty, listOf, objectOf, stringOf, textOf, textsOf, without } from '../read-json.ts'
import { readFormat, refuseLoose } from '../strict-check.ts'
import { declaredTool, splitTools } from '../declared-tools.ts'
import { fieldError, type PartTypes, readBody, requestError, unknownPart } from '../wire-error.ts'
import type { ServerRequest } from '../wire-server.ts'

const ownFields = new Set([
  'model',
  'messages',
  'tools',
  'response_format',
  'stream',
  'stream_options',
])

const usageField = new Set(['include_usage'])

/** Reads a request that a client of Chat Completions sent. */
export function decodeRequest(body: JsonValue): ServerRequest {
  const { request, modelId } = readBody('openai', body)
  if (!Array.isArray(request['messages'])) throw fieldError('openai', 'messages', 'is not a list')
  const { system, messages } = decodeMessages(listOf(request['messages']))
  const { tools, native } = splitTools(request['tools'], (tool, index) => {
    const { name, description, parameters, ...options } = objectOf(tool['function']) ?? {}
    const toolName = textOf(name)
    if (toolName === undefined) throw fieldError('openai', `tools[${index}].function.name`)
    const schema = objectOf(parameters)
    if (options['strict'] === true && schema) {
      refuseLoose(schema, `tools[${index}].function.parameters`)
    }
    return declaredTool('openai', toolName, { description, parameters: schema, options })
  })
  const format = objectOf(request['response_format'])
  const structure =
    format?.['type'] === 'json_schema'
      ? readFormat(objectOf(format['json_schema']), 'response_format.json_schema')
      : undefined
  const isStream = request['stream'] === true
  const streamOptions = objectOf(request['stream_options']) ?? {}
  const otherOptions = without(streamOptions, usageField)
  // All other fields of the request are parameters.
  const params: Record<string, unknown> = without(request, ownFields)
  if (!isEmpty(otherOptions)) params['stream_options'] = otherOptions
  if (request['response_format'] && !structure) {
    params['response_format'] = request['response_format']
  }
  if (native.length > 0) params['tools'] = native
  return {
    modelId,
    messages,
    system: system.length > 0 ? system.join('\n\n') : undefined,
    params,
    tools,
    structure,
    stream: isStream,
    includeUsage: isStream && streamOptions['include_usage'] === true,
  }
}

/**
 * Reads `messages`. Leading system and developer messages are the system prompt; later ones become
 * user messages, since UPP has no system messages. Neighbouring tool messages are merged into one.
 */
function decodeMessages(list: readonly JsonValue[]): {
  readonly system: readonly string[]
  readonly messages: readonly Message[]
} {
  const system: string[] = []
  const messages: Message[] = []
  const names = new Map<string, string>()
  let results: ToolResult[] = []
  const flush = (): void => {
    if (results.length > 0) messages.push(new ToolResultMessage(results))
    results = []
  }
  list.forEach((item, index) => {
    const at = `messages[${index}]`
    const message = objectOf(item)
    if (!message) throw fieldError('openai', at, 'is not an object')
    const { role, content, ...options } = message
    if (role === 'tool') {
      const toolCallId = textOf(message['tool_call_id'])
      if (toolCallId === undefined) throw fieldError('openai', `${at}.tool_call_id`)
      const toolName = names.get(toolCallId)
      return results.push({ toolCallId, result: plainText(content), toolName })
    }
    flush()
    if (role === 'user') {
      const metadata = optionsMetadata('openai', options)
      if (typeof content !== 'string' && !Array.isArray(content)) {
        throw fieldError('openai', `${at}.content`, 'is neither text nor a list')
      }
      const text =
        typeof content === 'string'
          ? content
          : listOf(content).map((part, i) =>
              decodePart(objectOf(part) ?? {}, `${at}.content[${i}]`),
            )
      return messages.push(new UserMessage(text, { metadata }))
    }
    if (role === 'assistant') return messages.push(decodeAssistant(message, at, names))
    if (role !== 'system' && role !== 'developer') {
      throw fieldError('openai', `${at}.role`, `is ${JSON.stringify(role)}`)
    }
    const text = plainText(content)
    return messages.length === 0 ? system.push(text) : messages.push(new UserMessage(text))
  })
  flush()
  return { system, messages }
}

function plainText(content: JsonValue | undefined): string {
  return typeof content === 'string' ? content : textsOf(content).join('')
}

const partTypes: PartTypes = {
  text: 'text',
  image: 'image_url',
  audio: 'input_audio',
  document: 'file',
  video: 'video_url',
  binary: undefined,
}

function decodePart(part: JsonObject, at: string): UserContent {
  const { type, text, image_url, input_audio, file, video_url, ...options } = part
  switch (type) {
    case 'text': {
      const metadata = optionsMetadata('openai', options)
      return { type: 'text', text: stringOf(text) ?? '', metadata }
    }
    case 'image_url': {
      const { url, ...others } = objectOf(image_url) ?? {}
      const address = textOf(url)
      if (address === undefined) throw fieldError('openai', `${at}.image_url.url`)
      const inline = parseDataUrl(address)
      return {
        type: 'image',
        source: inline ? { type: 'base64', data: inline.data } : { type: 'url', url: address },
        mimeType: inline?.mimeType ?? 'image/*',
        metadata: optionsMetadata('openai', { ...others, ...options }),
      }
    }
    case 'input_audio': {
      const audio = objectOf(input_audio)
      const data = decodeBase64(textOf(audio?.['data']) ?? '')
      return { type: 'audio', data, mimeType: audioMimeType(textOf(audio?.['format']) ?? 'wav') }
    }
    case 'file': {
      const inline = parseDataUrl(textOf(objectOf(file)?.['file_data']) ?? '')
      const fileId = textOf(objectOf(file)?.['file_id'])
      if (fileId !== undefined) {
        const url = fileAddress({ provider: 'openai', fileId })
        return { type: 'document', source: { type: 'url', url }, mimeType: 'application/pdf' }
      }
      if (!inline) {
        throw requestError(
          'openai',
          `The field "${at}.file.file_data" is not a data URL.`,
          'Send the bytes, or the id of an uploaded file.',
        )
      }
      const { data, mimeType } = inline
      const title = textOf(objectOf(file)?.['filename'])
      return { type: 'document', source: { type: 'base64', data }, mimeType, title }
    }
    case 'video_url': {
      const inline = parseDataUrl(textOf(objectOf(video_url)?.['url']) ?? '')
      if (!inline) throw fieldError('openai', `${at}.video_url.url`, 'is no data URL')
      return { type: 'video', data: decodeBase64(inline.data), mimeType: inline.mimeType }
    }
    default:
      throw unknownPart('openai', `${at}.type`, type, partTypes)
  }
}

function decodeAssistant(
  message: JsonObject,
  at: string,
  names: Map<string, string>,
): AssistantMessage {
  const reasoning = textOf(message['reasoning_content']) ?? textOf(message['reasoning'])
  const refusal = textOf(message['refusal'])
  const text = plainText(message['content'])
  const content: AssistantContent[] = []
  if (reasoning) content.push({ type: 'reasoning', text: reasoning })
  if (text) content.push({ type: 'text', text })
  if (refusal) {
    const metadata = withNative('openai', 'openai-chat', { type: 'refusal' })
    content.push({ type: 'text', text: refusal, metadata })
  }
  const calls = listOf(message['tool_calls']).map((call, index) =>
    decodeCall(objectOf(call) ?? {}, `${at}.tool_calls[${index}]`),
  )
  for (const { toolCallId, toolName } of calls) names.set(toolCallId, toolName)
  return new AssistantMessage(content, calls.length > 0 ? calls : undefined)
}

function decodeCall(call: JsonObject, at: string): ToolCall {
  const toolCallId = textOf(call['id'])
  const custom = objectOf(call['custom'])
  const { name, arguments: text } = objectOf(call['function']) ?? custom ?? {}
  const toolName = textOf(name)
  if (toolCallId === undefined || toolName === undefined) {
    throw fieldError('openai', at, 'has no id or no name')
  }
  if (custom) {
    const metadata = withNative('openai', 'openai-chat', { type: 'custom' })
    return { toolCallId, toolName, arguments: { input: stringOf(custom['input']) ?? '' }, metadata }
  }
  const toolArguments = parseArguments(stringOf(text) ?? '')
  return {
    toolCallId,
    toolName,
    arguments: toolArguments.arguments ?? {},
    invalidArguments: toolArguments.invalid,
  }
}
