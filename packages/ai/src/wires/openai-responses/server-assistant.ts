import { decodeBase64, type JsonObject } from '@skein/base'
import type { AssistantContent } from '../../contract/content.ts'
import type { BlockKind } from '../../contract/event.ts'
import { AssistantMessage } from '../../contract/message.ts'
import { parseArguments, type ToolCall } from '../../contract/tool.ts'
import { withNative } from '../native.ts'
import { listOf, objectOf, stringOf, textOf, without } from '../read-json.ts'
import { orderMetadata } from '../transcript.ts'
import { invalidRequest } from '../wire-error.ts'

const api = 'openai-responses'

/** Collects the items of one answer into an assistant message, each with its verbatim form. */
export class AssistantItems {
  readonly #names: Map<string, string>
  readonly #content: AssistantContent[] = []
  readonly #calls: ToolCall[] = []
  readonly #kinds: BlockKind[] = []

  constructor(names: Map<string, string>) {
    this.#names = names
  }

  add(item: JsonObject, at: string): void {
    switch (item['type'] ?? 'message') {
      case 'message':
        return this.#addTexts(item)
      case 'reasoning':
        return this.#addBlock({
          type: 'reasoning',
          text: reasoningText(item),
          metadata: withNative('openai', api, item),
        })
      case 'function_call':
      case 'custom_tool_call':
        return this.#addCall(item, at)
      case 'image_generation_call':
        if (textOf(item['result'])) return this.#addBlock(imageOf(item))
    }
    const name = textOf(item['type']) ?? 'unknown'
    this.#addBlock({ type: 'native', name, metadata: withNative('openai', api, item) })
  }

  /** Undefined when there were no items. */
  message(): AssistantMessage | undefined {
    if (this.#kinds.length === 0) return undefined
    const order = orderMetadata(this.#kinds)
    const options = order['order'] ? { metadata: { openai: { api, ...order } } } : {}
    const calls = this.#calls.length > 0 ? this.#calls : undefined
    return new AssistantMessage(this.#content, calls, options)
  }

  #addBlock(block: AssistantContent): void {
    this.#content.push(block)
    this.#kinds.push(block.type === 'text' ? 'text' : 'native')
  }

  /** A message without an id was written by the client; there is nothing verbatim to keep. */
  #addTexts(item: JsonObject): void {
    const { content } = item
    if (typeof content === 'string') return this.#addBlock({ type: 'text', text: content })
    const about = without(item, new Set(['content']))
    for (const value of listOf(content)) {
      const part = objectOf(value) ?? {}
      const text = stringOf(part['text']) ?? stringOf(part['refusal']) ?? ''
      const native = without(part, new Set(['text', 'refusal']))
      const isOwn = item['id'] !== undefined || part['type'] === 'refusal'
      const metadata = withNative('openai', api, native, { item: about })
      this.#addBlock({ type: 'text', text, ...(isOwn && { metadata }) })
    }
  }

  #addCall(item: JsonObject, at: string): void {
    const toolCallId = textOf(item['call_id'])
    const toolName = textOf(item['name'])
    if (toolCallId === undefined || toolName === undefined) {
      throw invalidRequest('openai', `The field "${at}" has no call_id or no name.`)
    }
    this.#names.set(toolCallId, toolName)
    this.#kinds.push('tool_call')
    const isCustom = item['type'] === 'custom_tool_call'
    const parsed = isCustom
      ? { arguments: { input: stringOf(item['input']) ?? '' } }
      : parseArguments(stringOf(item['arguments']) ?? '')
    this.#calls.push({
      toolCallId,
      toolName,
      arguments: parsed.arguments ?? {},
      ...('invalid' in parsed && parsed.invalid && { invalidArguments: parsed.invalid }),
      ...((isCustom || item['id'] !== undefined) && { metadata: withNative('openai', api, item) }),
    })
  }
}

export function reasoningText(item: JsonObject): string {
  return [...listOf(item['summary']), ...listOf(item['content'])]
    .map((part) => stringOf(objectOf(part)?.['text']) ?? '')
    .filter((text) => text !== '')
    .join('\n\n')
}

function imageOf(item: JsonObject): AssistantContent {
  return {
    type: 'image',
    source: { type: 'bytes', data: decodeBase64(textOf(item['result']) ?? '') },
    mimeType: `image/${textOf(item['output_format']) ?? 'png'}`,
    metadata: withNative('openai', api, without(item, new Set(['result']))),
  }
}
