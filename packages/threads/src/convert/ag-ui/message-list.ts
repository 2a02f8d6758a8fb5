import type { MultiModalContent } from '../../document/part.ts'
import type { AgUiContentPart, AgUiKnownEvent, AgUiMessage } from './types.ts'

interface Draft {
  id: string
  role: AgUiMessage['role']
  content?: AgUiMessage['content']
  name?: string
  toolCallId?: string
  toolCalls?: { id: string; type: 'function'; function: { name: string; arguments: string } }[]
}

/** The messages that a client has: those from before the run, and those that the events of the run made. */
export class MessageList {
  readonly #before: readonly AgUiMessage[]
  readonly #drafts = new Map<string, Draft>()
  readonly #ids: Set<string>
  readonly #results: Set<string>

  constructor(before: readonly AgUiMessage[]) {
    this.#before = before
    this.#ids = new Set(before.map(({ id }) => id))
    this.#results = new Set(
      before.flatMap(({ role, toolCallId }) =>
        role === 'tool' && toolCallId !== undefined ? [toolCallId] : [],
      ),
    )
  }

  has(id: string): boolean {
    return this.#ids.has(id) || this.#drafts.has(id)
  }

  /** Returns the id, or a longer one if a message of the run has it already: models may use a call id twice. */
  freeId(id: string): string {
    return this.#drafts.has(id) ? `${id}:${this.#drafts.size}` : id
  }

  /** True if the client sent the result itself. */
  hasResult(toolCallId: string): boolean {
    return this.#results.has(toolCallId)
  }

  list(): AgUiMessage[] {
    const own = [...this.#drafts.values()]
    const merged = this.#before.map((message) => this.#drafts.get(message.id) ?? message)
    return structuredClone([...merged, ...own.filter(({ id }) => !this.#ids.has(id))])
  }

  /** The calls in these messages. */
  calls(ids: ReadonlySet<string>): string[] {
    return [...ids].flatMap((id) => this.#drafts.get(id)?.toolCalls?.map((call) => call.id) ?? [])
  }

  discard(id: string): void {
    const draft = this.#drafts.get(id)
    if (draft?.role === 'reasoning') draft.content = ''
    else this.#drafts.delete(id)
  }

  setArguments(toolCallId: string, text: string): void {
    const call = this.#callOf(toolCallId)
    if (call) call.function.arguments = text
  }

  apply(event: AgUiKnownEvent): void {
    switch (event.type) {
      case 'TEXT_MESSAGE_START': {
        const { messageId: id, role = 'assistant', name } = event
        const nameField = name === undefined ? {} : { name }
        if (!this.#drafts.has(id)) this.#drafts.set(id, { id, role, content: '', ...nameField })
        return
      }
      case 'REASONING_MESSAGE_START': {
        const { messageId: id } = event
        if (!this.#drafts.has(id)) this.#drafts.set(id, { id, role: 'reasoning', content: '' })
        return
      }
      case 'TEXT_MESSAGE_CONTENT':
      case 'REASONING_MESSAGE_CONTENT': {
        const draft = this.#drafts.get(event.messageId)
        if (draft) draft.content = `${draft.content as string}${event.delta}`
        return
      }
      case 'TOOL_CALL_START': {
        const { toolCallId, toolCallName: name, parentMessageId: id = toolCallId } = event
        const parent: Draft = this.#drafts.get(id) ?? { id, role: 'assistant' }
        this.#drafts.set(id, parent)
        const call = {
          id: toolCallId,
          type: 'function',
          function: { name, arguments: '' },
        } as const
        ;(parent.toolCalls ??= []).push(call)
        return
      }
      case 'TOOL_CALL_ARGS': {
        const call = this.#callOf(event.toolCallId)
        if (call) call.function.arguments += event.delta
        return
      }
      case 'TOOL_CALL_RESULT': {
        const { messageId: id, toolCallId, content } = event
        this.#drafts.set(id, { id, role: 'tool', toolCallId, content })
        return
      }
      default:
    }
  }

  #callOf(toolCallId: string): NonNullable<Draft['toolCalls']>[number] | undefined {
    for (const { toolCalls = [] } of this.#drafts.values())
      for (const call of toolCalls) if (call.id === toolCallId) return call
    return undefined
  }
}

/** Returns a file as content of AG-UI; undefined for content that AG-UI has no type for. */
export function fileContent(item: MultiModalContent): AgUiContentPart | undefined {
  switch (item.kind) {
    case 'image-url':
    case 'audio-url':
    case 'video-url':
    case 'document-url': {
      const type = item.kind.slice(0, -'-url'.length) as 'image' | 'audio' | 'video' | 'document'
      const mimeField = item.media_type == null ? {} : { mimeType: item.media_type }
      return { type, source: { type: 'url', value: item.url, ...mimeField } }
    }
    case 'binary': {
      const kind = item.media_type.split('/')[0]
      const type = kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'document'
      return { type, source: { type: 'data', value: item.data, mimeType: item.media_type } }
    }
    default:
      return undefined
  }
}
