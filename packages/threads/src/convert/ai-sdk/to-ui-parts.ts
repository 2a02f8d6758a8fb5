import type { SystemMessage, ThreadMessage } from '../../document/thread.ts'
import type {
  FilePart,
  MessagePart,
  MultiModalContent,
  UserContent,
  UserPromptPart,
} from '../../document/part.ts'
import { dataUrl, contentMediaType } from '../bridge/media.ts'
import { carry, eventPart, type PartCarrier, type ShownField, omitKeys } from './carrier.ts'
import { type AnyReturn, outcomeOf, UIToolBuilder } from './to-ui-tools.ts'
import type { Citation, FileUIPart, UIMessagePart } from './types.ts'

/** How much of a thread is sent with its UI messages. */
export type Carry = 'public' | 'all'

/** The data of a part that is sent with `carry: 'all'` only. */
export interface HiddenFields {
  readonly part: object
  readonly at: string
  readonly from?: ShownField
}

/** Adds the hidden fields to the thread data of a UI part, with `carry: 'all'` only. */
export type Hide = (shown: PartCarrier, hidden: HiddenFields) => PartCarrier

/** Converts the parts of a thread to UI parts, message by message. */
export class UIPartBuilder {
  readonly carry: Carry
  readonly #tools = new UIToolBuilder((shown, hidden) => this.#hide(shown, hidden))
  #parts: UIMessagePart[] = []
  #data = new Map<string, UIMessagePart>()
  #turnId = ''
  #reasonings = 0

  constructor(carryMode: Carry) {
    this.carry = carryMode
  }

  /** Starts a message and returns the list to which its parts will be added. */
  begin(): UIMessagePart[] {
    this.#parts = []
    this.#data = new Map()
    this.#tools.beginMessage()
    return this.#parts
  }

  beginTurn(turnId: string): void {
    this.#turnId = turnId
    this.#reasonings = 0
  }

  /**
   * Adds the parts of a message in an agent turn, and returns the data about the message that belongs in the
   * metadata.
   */
  addMessage(message: ThreadMessage | SystemMessage, at: string): Record<string, unknown> {
    if (message.message_type === 'system') return this.#addEvent(message, at)
    if (!Array.isArray(message.parts)) return { ...(message as object) }
    if (message.message_type === 'response') {
      this.#parts.push({ type: 'step-start' })
      this.#tools.beginStep()
    }
    message.parts.forEach((part, index) => {
      if (part.part_kind === 'user-prompt') this.#addSteering(part, `${at}.${index}`, message)
      else this.#addPart(part, `${at}.${index}`, message.agent_id)
    })
    return omitKeys(message, 'parts') as Record<string, unknown>
  }

  addUserPart(part: MessagePart, at: string): void {
    if (part.part_kind === 'user-prompt') this.#parts.push(...userContent(part, at, this.carry))
    else if (!isReturn(part) || !this.#tools.settle(part, at)) this.#addOpaque(part, at)
  }

  #addPart(part: Exclude<MessagePart, UserPromptPart>, at: string, agent_id: string): void {
    switch (part.part_kind) {
      case 'text': {
        const { citations } = part as { citations?: Citation[] }
        return this.#addText(part.content, { agent_id }, { part, at, from: 'content' }, citations)
      }
      case 'speech':
        if (typeof part.transcript !== 'string') return this.#addOpaque(part, at, agent_id)
        return this.#addText(part.transcript, { agent_id }, { part, at, from: 'transcript' })
      case 'thinking': {
        const from = typeof part.content === 'string' ? 'content' : undefined
        const providerMetadata = carry(this.#hide({ agent_id }, { part, at, from }), part)
        const id = reasoningId(this.#turnId, this.#reasonings++)
        this.#parts.push({
          type: 'reasoning',
          id,
          text: part.content ?? '',
          state: 'done',
          providerMetadata,
        })
        return
      }
      case 'tool-call':
      case 'builtin-tool-call': {
        const tool = this.#tools.addCall(part, at, agent_id)
        if (tool) this.#parts.push(tool as UIMessagePart)
        else this.#addOpaque(part, at, agent_id)
        return
      }
      case 'tool-return':
      case 'builtin-tool-return':
      case 'retry-prompt':
        if (!this.#tools.settle(part as AnyReturn, at)) this.#addOpaque(part, at, agent_id)
        return
      case 'file':
        return this.#addFile(part, at, agent_id)
      case 'compaction':
      case 'tool-availability-delta':
        return this.#addOpaque(part, at, agent_id)
      default:
        return this.#addOpaque(part satisfies never, at, agent_id)
    }
  }

  #addText(text: string, shown: PartCarrier, hidden: HiddenFields, citations?: Citation[]): void {
    const providerMetadata = carry(this.#hide(shown, hidden), hidden.part)
    const citationFields = citations ? { citations } : {}
    this.#parts.push({ type: 'text', text, state: 'done', ...citationFields, providerMetadata })
  }

  #addFile(part: FilePart, at: string, agent_id: string): void {
    const { content } = part
    const type = (part as { reasoning?: boolean }).reasoning ? 'reasoning-file' : 'file'
    const isBinary = content.kind === 'binary'
    const url = isBinary ? dataUrl(content.media_type, content.data) : content.url
    // The URL contains the bytes; storing them in the metadata too would double the size. Bytes in URL-safe
    // base64 are stored there all the same, because the URL uses the standard alphabet, from which the
    // original text could not be restored.
    const hidden: HiddenFields =
      isBinary && !/[-_]/.test(content.data)
        ? { part: { ...part, content: omitKeys(content, 'data') }, at, from: 'data' }
        : { part, at }
    const providerMetadata = carry(this.#hide({ agent_id }, hidden), part)
    this.#parts.push({ type, mediaType: contentMediaType(content), url, providerMetadata })
  }

  /** Adds a prompt that came during a run, from a person or from another agent. */
  #addSteering(part: UserPromptPart, at: string, message: object): void {
    const uiContent = userContent(part, at, this.carry)
    const content = uiContent.filter((item) => item.type === 'text' || item.type === 'file')
    const { message_id } = message as { message_id?: string }
    const id = message_id ?? `s-${at}`
    if (content.length > 0) this.#parts.push({ type: 'steering-message', id, parts: content })
    this.#parts.push(...uiContent.filter((item) => item.type !== 'text' && item.type !== 'file'))
  }

  #addEvent(message: SystemMessage, at: string): Record<string, unknown> {
    if (this.#tools.applyApproval(message.event_type, message.event_data)) return { ...message }
    const part = eventPart(message, this.carry === 'all' ? `tp-${at}` : undefined)
    if (!part) return { ...message }
    if (!('data' in part)) {
      this.#parts.push(part)
      return { ...message }
    }
    const key = part.id === undefined ? undefined : `${part.type}\0${part.id}`
    const slot = key === undefined ? undefined : this.#data.get(key)
    // A data part with the same id replaces the earlier one, as in the client.
    if (slot) Object.assign(slot, part)
    else this.#parts.push(part)
    if (key !== undefined && !slot) this.#data.set(key, part)
    return { ...omitKeys(message, 'event_data'), shown: part.id }
  }

  /**
   * Adds a part that has no equivalent in the UI, as a data part. With `carry: 'public'`, only outcomes of
   * calls are added.
   */
  #addOpaque(part: MessagePart, at: string, agent_id?: string): void {
    const who = agent_id === undefined ? {} : { agent_id }
    if (this.carry === 'all') {
      this.#parts.push({ type: 'data-tp-part', id: `tp-${at}`, data: { ...who, part } })
    } else if (isReturn(part)) {
      const { part_kind, tool_name, tool_call_id, content } = part
      const shown = { part_kind, tool_name, tool_call_id, outcome: outcomeOf(part), content }
      this.#parts.push({ type: 'data-tp-part', data: { ...who, part: shown } })
    }
  }

  #hide(shown: PartCarrier, { part, at, from }: HiddenFields): PartCarrier {
    if (this.carry === 'public') return shown
    if (from === undefined) return { ...shown, at, part }
    return { ...shown, at, part: omitKeys(part, from), from }
  }
}

/**
 * Returns the id of a reasoning part, which the client requires. The id must be the same whether the part
 * comes from a live stream or from the stored thread.
 */
export function reasoningId(turnId: string, index: number): string {
  return `${turnId}:r${index}`
}

function isReturn(part: MessagePart): part is AnyReturn {
  return part.part_kind === 'tool-return' || part.part_kind === 'retry-prompt'
}

/** Converts a person's prompt to UI parts: one for a text, one per item of a list. */
export function userContent(part: UserPromptPart, at: string, mode: Carry): UIMessagePart[] {
  const { content } = part
  const own = (carrier: PartCarrier) =>
    mode === 'all' ? { providerMetadata: carry({ at, ...carrier }, part) } : othersOf(part)
  if (typeof content === 'string') {
    return [
      { type: 'text', text: content, ...own({ part: omitKeys(part, 'content'), from: 'content' }) },
    ]
  }
  if (!Array.isArray(content) || content.length === 0) {
    return mode === 'all' ? [{ type: 'data-tp-part', id: `tp-${at}`, data: { part } }] : []
  }
  const prompt = omitKeys(part, 'content')
  return content.flatMap((item: UserContent, index) =>
    contentItem(item, `${at}.${index}`, mode, index === 0 ? { prompt } : {}),
  )
}

function contentItem(
  item: UserContent,
  at: string,
  mode: Carry,
  extra: PartCarrier,
): UIMessagePart[] {
  const own = (carrier: PartCarrier) =>
    mode === 'all' ? { providerMetadata: carry({ at, ...extra, ...carrier }) } : othersOf(item)
  if (typeof item === 'string') return [{ type: 'text', text: item, ...own({ from: 'content' }) }]
  if (item.kind === 'text-content') {
    const metadata = own({ part: omitKeys(item, 'content'), from: 'content' })
    return [{ type: 'text', text: item.content, ...metadata }]
  }
  const file = fileOf(item)
  if (file) {
    // The original in the metadata omits its bytes or address, because the `url` of the UI part has them. URL-safe
    // base64 and uploaded files are kept whole: `url` is not enough to restore them.
    const isWhole =
      item.kind === 'uploaded-file' || (item.kind === 'binary' && /[-_]/.test(item.data))
    const from = item.kind === 'binary' ? 'data' : 'url'
    return [{ ...file, ...own(isWhole ? { part: item } : { part: omitKeys(item, from), from }) }]
  }
  return mode === 'all'
    ? [{ type: 'data-tp-part', id: `tp-${at}`, data: { ...extra, part: item } }]
    : []
}

function fileOf(item: MultiModalContent): FileUIPart | undefined {
  const { filename, provider_reference } = item as Extras
  const extra = {
    filename: typeof filename === 'string' ? filename : undefined,
    providerReference: provider_reference,
  }
  switch (item.kind) {
    case 'binary': {
      if (typeof item.data !== 'string') return undefined
      const { media_type: mediaType } = item
      return { type: 'file', mediaType, url: dataUrl(mediaType, item.data), ...extra }
    }
    case 'image-url':
    case 'audio-url':
    case 'video-url':
    case 'document-url':
      if (typeof item.url !== 'string') return undefined
      return { type: 'file', mediaType: contentMediaType(item), url: item.url, ...extra }
    case 'uploaded-file': {
      const providerReference = { [item.provider_name]: item.file_id }
      return { type: 'file', mediaType: contentMediaType(item), url: '', providerReference }
    }
    case 'text-content':
    case 'cache-point':
      return undefined
    default: {
      // A content kind of a later version is shown as a file if it has a URL.
      const { url } = item satisfies never as { url?: unknown }
      if (typeof url !== 'string') return undefined
      return { type: 'file', mediaType: contentMediaType(item), url, ...extra }
    }
  }
}

/** Fields of UI files that the protocol does not define. */
interface Extras {
  readonly filename?: string
  readonly provider_reference?: Record<string, string>
}

function othersOf(value: unknown): object {
  const metadata = (value as { provider_metadata?: object } | null)?.provider_metadata
  return metadata ? { providerMetadata: metadata } : {}
}
