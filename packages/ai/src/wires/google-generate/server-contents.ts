import { decodeBase64, type JsonObject, type JsonValue } from '@skein/base'
import type { UserContent } from '../../contract/content.ts'
import { ToolResultMessage, UserMessage, type Message } from '../../contract/message.ts'
import type { ToolCall, ToolResult } from '../../contract/tool.ts'
import { answerContext, readAnswer } from '../answer-context.ts'
import { isEmpty, listOf, objectOf, stringOf, textOf, without } from '../read-json.ts'
import { invalidRequest } from '../wire-error.ts'
import { decodeResponse } from './response.ts'

/** Reads `contents`. An entry with function responses becomes two messages: results, then the rest. */
export function decodeContents(list: readonly JsonValue[]): readonly Message[] {
  const messages: Message[] = []
  // Calls that no response has answered yet; those without an id are matched by name, in order.
  let open: ToolCall[] = []
  list.forEach((item, index) => {
    const at = `contents[${index}]`
    const content = objectOf(item)
    const parts = content && listOf(content['parts']).map((part) => objectOf(part) ?? {})
    if (!parts) throw invalidRequest('google', `The field "${at}" is not an object.`)
    if (content['role'] === 'model') {
      const answer = { candidates: [{ content: { parts }, finishReason: 'STOP' }] }
      const context = answerContext('google', {})
      const message = readAnswer('google', at, () => decodeResponse(answer, context))
      open = [...(message.toolCalls ?? [])]
      messages.push(message)
    } else messages.push(...decodeUser(parts, `${at}.parts`, open))
  })
  return messages
}

function decodeUser(parts: readonly JsonObject[], at: string, open: ToolCall[]): Message[] {
  const results: ToolResult[] = []
  const content: UserContent[] = []
  parts.forEach((part, index) => {
    const response = objectOf(part['functionResponse'])
    if (response) results.push(decodeResult(response, open))
    else content.push(decodePart(part, `${at}[${index}]`))
  })
  return [
    ...(results.length > 0 ? [new ToolResultMessage(results)] : []),
    ...(content.length > 0 ? [new UserMessage(content)] : []),
  ]
}

function decodeResult(response: JsonObject, open: ToolCall[]): ToolResult {
  const name = textOf(response['name'])
  const id = textOf(response['id'])
  const index = open.findIndex((call) =>
    id === undefined ? call.toolName === name : call.toolCallId === id,
  )
  const [call] = index < 0 ? [] : open.splice(index, 1)
  const { result, isError } = unwrap(objectOf(response['response']) ?? {})
  const media = listOf(response['parts']).map((part, i) =>
    decodePart(objectOf(part) ?? {}, `functionResponse.parts[${i}]`),
  )
  const toolName = call?.toolName ?? name
  return {
    toolCallId: call?.toolCallId ?? id ?? name ?? '',
    result: media.length > 0 ? [...textBlocks(result), ...media] : result,
    ...(isError && { isError }),
    ...(toolName !== undefined && { toolName }),
  }
}

/** `output` and `error` are read by the API; an object without them is the output itself. */
function unwrap(response: JsonObject): { result: JsonValue; isError: boolean } {
  const keys = Object.keys(response)
  if (keys.length !== 1) return { result: response, isError: false }
  if (keys[0] === 'error') return { result: response['error']!, isError: true }
  return { result: keys[0] === 'output' ? response['output']! : response, isError: false }
}

function textBlocks(result: JsonValue): UserContent[] {
  if (result === '') return []
  return [{ type: 'text', text: typeof result === 'string' ? result : JSON.stringify(result) }]
}

const partFields = new Set(['text', 'inlineData', 'fileData'])

function decodePart(part: JsonObject, at: string): UserContent {
  const options = without(part, partFields)
  const metadata = isEmpty(options) ? {} : { metadata: { google: options } }
  const text = stringOf(part['text'])
  if (text !== undefined) return { type: 'text', text, ...metadata }
  const inline = objectOf(part['inlineData'])
  if (inline) return { ...inlineOf(inline, at), ...metadata }
  const file = objectOf(part['fileData'])
  const url = textOf(file?.['fileUri'])
  if (!file || url === undefined) {
    const told = Object.keys(part).join(', ') || 'nothing'
    throw invalidRequest('google', `The field "${at}" holds ${told}, which cannot be read.`)
  }
  const mimeType = textOf(file['mimeType']) ?? 'application/octet-stream'
  const type = mimeType.startsWith('image/') ? 'image' : 'document'
  return { type, source: { type: 'url', url }, mimeType, ...metadata }
}

function inlineOf(inline: JsonObject, at: string): UserContent {
  const mimeType = textOf(inline['mimeType']) ?? 'application/octet-stream'
  const data = stringOf(inline['data']) ?? ''
  if (mimeType.startsWith('image/'))
    return { type: 'image', source: { type: 'base64', data }, mimeType }
  if (mimeType === 'application/pdf')
    return { type: 'document', source: { type: 'base64', data }, mimeType }
  const bytes = bytesOf(data, at)
  if (mimeType.startsWith('text/')) {
    const text = new TextDecoder().decode(bytes)
    return { type: 'document', source: { type: 'text', data: text }, mimeType }
  }
  const kind = mimeType.split('/')[0]
  return { type: kind === 'audio' || kind === 'video' ? kind : 'binary', data: bytes, mimeType }
}

function bytesOf(data: string, at: string): Uint8Array {
  try {
    return decodeBase64(data)
  } catch {
    throw invalidRequest('google', `The field "${at}.inlineData.data" is not base64.`)
  }
}
