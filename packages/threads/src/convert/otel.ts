import { type Converted, joinPointer } from '../issue.ts'
import type { Thread, ThreadMessage } from '../document/thread.ts'
import type { MessagePart, UserContent } from '../document/part.ts'
import { Losses, walkMessages } from './bridge/walk.ts'
import { toStandardAlphabet } from './bridge/media.ts'

/** A message of the OpenTelemetry GenAI conventions (status: development), for span attributes and events. */
export interface OtelMessage {
  readonly role: 'user' | 'assistant' | 'tool'
  readonly parts: readonly OtelPart[]
  readonly name?: string
  /** Set on the model's responses only. */
  readonly finish_reason?: string
}

/** One part of a message of the GenAI conventions. */
type OtelPart =
  | { readonly type: 'text'; readonly content: string }
  | { readonly type: 'reasoning'; readonly content: string }
  | {
      readonly type: 'tool_call'
      readonly id: string
      readonly name: string
      readonly arguments: unknown
    }
  | { readonly type: 'tool_call_response'; readonly id: string; readonly response: unknown }
  | {
      readonly type: 'server_tool_call'
      readonly id: string
      readonly name: string
      readonly server_tool_call: { readonly type: string; readonly arguments: unknown }
    }
  | {
      readonly type: 'server_tool_call_response'
      readonly id: string
      readonly server_tool_call_response: { readonly type: string; readonly response: unknown }
    }
  | {
      readonly type: 'blob'
      readonly modality: string
      readonly mime_type: string
      readonly content: string
    }
  | {
      readonly type: 'uri'
      readonly modality: string
      readonly mime_type?: string
      readonly uri: string
    }
  | {
      readonly type: 'file'
      readonly modality: string
      readonly mime_type?: string
      readonly file_id: string
    }

/** The values of `gen_ai.input.messages` and `gen_ai.output.messages`. */
export interface OtelMessages {
  readonly input: readonly OtelMessage[]
  readonly output: readonly OtelMessage[]
}

const FORMAT = 'GenAI telemetry'
const NO_PLACE = 'the GenAI conventions have no field for it'

/**
 * Converts a thread to OpenTelemetry GenAI messages. If the last message is a response, it is the output;
 * everything before it is the input. There is no import: the conventions have no signatures, so a thread
 * could not be continued from them.
 */
export function toOtelMessages(thread: Thread): Converted<OtelMessages> {
  const losses = new Losses()
  const messages: { message: OtelMessage; isResponse: boolean }[] = []
  for (const walked of walkMessages(thread, losses, FORMAT)) {
    if (walked.kind === 'system') {
      losses.add(walked.pointer, 'GenAI messages have no system events')
      continue
    }
    const { message, parts, pointer, agentId, kind } = walked
    losses.rest(
      message,
      pointer,
      ['turn_type', 'message_type', 'parts', 'agent_id', 'finish_reason'],
      NO_PLACE,
    )
    const isResponse = kind === 'response'
    const otelParts = parts.map((part, index) => ({
      isResult: part.part_kind === 'tool-return' || part.part_kind === 'retry-prompt',
      parts: toParts(part, joinPointer(pointer, 'parts', index), losses),
    }))
    const name = agentId === undefined ? {} : { name: agentId }
    const { finish_reason: reason } = message as ThreadMessage
    const add = (role: OtelMessage['role'], list: readonly OtelPart[]) => {
      if (list.length === 0) return
      const finish = isResponse ? { finish_reason: reason ?? 'stop' } : {}
      messages.push({
        message: { role, parts: list, ...(role === 'assistant' && name), ...finish },
        isResponse,
      })
    }
    const pick = (isResult: boolean) =>
      otelParts.flatMap((entry) => (entry.isResult === isResult ? entry.parts : []))
    if (!isResponse) add('tool', pick(true))
    add(
      isResponse ? 'assistant' : 'user',
      isResponse ? otelParts.flatMap((entry) => entry.parts) : pick(false),
    )
  }
  const last = messages.findLastIndex((entry) => entry.isResponse)
  const isLast = last === messages.length - 1 && last >= 0
  const list = messages.map((entry) => entry.message)
  return {
    value: isLast
      ? { input: list.slice(0, -1), output: list.slice(-1) }
      : { input: list, output: [] },
    lost: losses.list,
  }
}

function toParts(part: MessagePart, pointer: string, losses: Losses): OtelPart[] {
  const report = (...carried: string[]) =>
    losses.rest(part, pointer, ['part_kind', ...carried], NO_PLACE)
  switch (part.part_kind) {
    case 'user-prompt':
      report('content')
      if (typeof part.content === 'string') return [{ type: 'text', content: part.content }]
      return part.content.flatMap((item, index): OtelPart[] =>
        typeof item === 'string'
          ? [{ type: 'text', content: item }]
          : mediaParts(item, joinPointer(pointer, 'content', index), losses),
      )
    case 'text':
      report('content')
      return [{ type: 'text', content: part.content }]
    case 'thinking':
      report('content')
      return part.content ? [{ type: 'reasoning', content: part.content }] : []
    case 'tool-call':
      report('tool_call_id', 'tool_name', 'args')
      return [
        { type: 'tool_call', id: part.tool_call_id, name: part.tool_name, arguments: part.args },
      ]
    case 'tool-return':
      report(
        'tool_call_id',
        'tool_name',
        'content',
        ...(part.status === 'success' ? ['status'] : []),
      )
      return [{ type: 'tool_call_response', id: part.tool_call_id, response: part.content }]
    case 'retry-prompt':
      report('tool_call_id', 'tool_name', 'content')
      losses.add(joinPointer(pointer, 'part_kind'), 'a retry becomes a response')
      return [{ type: 'tool_call_response', id: part.tool_call_id ?? '', response: part.content }]
    case 'builtin-tool-call': {
      report('tool_call_id', 'tool_name', 'args')
      const { tool_call_id: id, tool_name: name } = part
      return [
        {
          type: 'server_tool_call',
          id,
          name,
          server_tool_call: { type: name, arguments: part.args },
        },
      ]
    }
    case 'builtin-tool-return': {
      report('tool_call_id', 'tool_name', 'content')
      const response = { type: part.tool_name, response: part.content }
      return [
        {
          type: 'server_tool_call_response',
          id: part.tool_call_id,
          server_tool_call_response: response,
        },
      ]
    }
    case 'file':
      report('content')
      return mediaParts(part.content, joinPointer(pointer, 'content'), losses)
    case 'compaction':
    case 'speech':
    case 'tool-availability-delta':
      losses.add(pointer, `GenAI messages have no part for ${part.part_kind}`)
      return []
    default: {
      const { part_kind } = part satisfies never as { part_kind: string }
      losses.add(pointer, `GenAI messages have no part for ${part_kind}`)
      return []
    }
  }
}

function mediaParts(
  item: Exclude<UserContent, string>,
  pointer: string,
  losses: Losses,
): OtelPart[] {
  const report = (...carried: string[]) =>
    losses.rest(item, pointer, ['kind', ...carried], NO_PLACE)
  switch (item.kind) {
    case 'text-content':
      report('content')
      return [{ type: 'text', content: item.content }]
    case 'binary': {
      report('data', 'media_type')
      const { media_type: mime_type } = item
      const content = toStandardAlphabet(item.data)
      return [{ type: 'blob', modality: modalityOf(mime_type), mime_type, content }]
    }
    case 'image-url':
    case 'audio-url':
    case 'video-url':
    case 'document-url': {
      report('url', 'media_type')
      const mime_type = item.media_type || undefined
      return [{ type: 'uri', modality: item.kind.replace('-url', ''), mime_type, uri: item.url }]
    }
    case 'uploaded-file': {
      report('file_id', 'media_type')
      const mime_type = item.media_type || undefined
      return [
        { type: 'file', modality: modalityOf(mime_type ?? ''), mime_type, file_id: item.file_id },
      ]
    }
    case 'cache-point':
      losses.add(pointer, `GenAI messages have no part for ${item.kind}`)
      return []
    default: {
      const { kind } = item satisfies never as { kind: string }
      losses.add(pointer, `GenAI messages have no part for ${kind}`)
      return []
    }
  }
}

function modalityOf(mediaType: string): string {
  const [kind] = mediaType.split('/')
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'document'
}
