import { encodeBase64, type JsonObject } from '@skein/base'
import type { AssistantContent, UserContent } from '../contract/content.ts'
import { invalidRequest } from '../contract/error.ts'
import {
  AssistantMessage,
  type Message,
  ToolResultMessage,
  UserMessage,
} from '../contract/message.ts'
import type { ToolCall, ToolResult } from '../contract/tool.ts'
import { parseArguments } from '../contract/parse-arguments.ts'
import { decodeLooseBase64, strictBase64 } from '../media/bytes.ts'
import { mediaTypeOf } from '../media/media-type.ts'
import { fileAddress } from '../media/vendor-file.ts'
import { toMetadata } from './provider-options.ts'
import { fromReference } from './uploads.ts'
import type { AiSdkMessage, AiSdkPart, AiSdkWarning } from './types.ts'

/** A prompt of the AI SDK as messages of this package. */
export interface AiSdkPrompt {
  readonly system: string
  /** The system prompt as blocks with Anthropic's fields, if a system message has cache marks. */
  readonly systemBlocks?: readonly JsonObject[]
  readonly messages: readonly Message[]
  readonly warnings: readonly AiSdkWarning[]
}

/** The model that the prompt is for; its provider decides which options belong to it. */
interface PromptModel {
  readonly provider: string
}

/** Reads a prompt of the AI SDK. */
export function fromPrompt(prompt: readonly AiSdkMessage[], model: PromptModel): AiSdkPrompt {
  const reader = new PromptReader(model)
  for (const message of prompt) reader.read(message)
  return reader.prompt
}

class PromptReader {
  readonly #model: PromptModel
  readonly #system: JsonObject[] = []
  readonly #messages: Message[] = []
  readonly #warnings: AiSdkWarning[] = []

  constructor(model: PromptModel) {
    this.#model = model
  }

  get prompt(): AiSdkPrompt {
    const system = this.#system.map(({ text }) => String(text)).join('\n\n')
    const isMarked = this.#system.some((block) => Object.keys(block).length > 2)
    return {
      system,
      messages: this.#messages,
      warnings: this.#warnings,
      ...(isMarked && { systemBlocks: this.#system }),
    }
  }

  read({ role, content, providerOptions }: AiSdkMessage): void {
    const metadata = toMetadata(providerOptions, this.#model)
    const options = metadata ? { metadata } : {}
    const parts: readonly AiSdkPart[] =
      typeof content === 'string' ? [{ type: 'text', text: content }] : content
    switch (role) {
      case 'system': {
        const text = parts.map((part) => part.text ?? '').join('')
        this.#system.push({ type: 'text', text, ...metadata?.['anthropic'] })
        return
      }
      case 'user':
        this.#messages.push(
          new UserMessage(
            parts.map((part) => this.#block(part)),
            options,
          ),
        )
        return
      case 'tool': {
        const results = parts.filter(({ type }) => type === 'tool-result')
        if (results.length > 0)
          this.#messages.push(new ToolResultMessage(results.map((part) => this.#result(part)), options)) // prettier-ignore
        return
      }
      default:
        this.#messages.push(this.#assistant(parts, options))
    }
  }

  #assistant(parts: readonly AiSdkPart[], options: object): AssistantMessage {
    const content: AssistantContent[] = []
    const calls: ToolCall[] = []
    let item: unknown
    for (const part of parts) {
      // OpenAI's provider makes one reasoning part of each summary of one item; here they are one block again.
      const own = part.type === 'reasoning' ? part.providerOptions?.['openai']?.['itemId'] : undefined // prettier-ignore
      const last = content.at(-1)
      if (own !== undefined && own === item && last?.type === 'reasoning')
        content[content.length - 1] = this.#joined(last, part)
      else this.#addAssistant(part, content, calls)
      item = own
    }
    return new AssistantMessage(content, calls.length > 0 ? calls : undefined, options)
  }

  #addAssistant(part: AiSdkPart, content: AssistantContent[], calls: ToolCall[]): void {
    const { type, text = '', toolCallId = '', toolName = '', input, providerOptions } = part
    switch (type) {
      case 'text':
      case 'reasoning': {
        const kind = type === 'reasoning' ? 'reasoning' : 'other'
        const metadata = toMetadata(providerOptions, this.#model, { kind, text })
        content.push({ type, text, ...(metadata && { metadata }) })
        return
      }
      case 'tool-call': {
        if (part.providerExecuted) break
        const argumentFields =
          typeof input === 'string' ? parseArguments(input) : { arguments: input as JsonObject }
        const metadata = toMetadata(providerOptions, this.#model)
        const args = argumentFields.arguments ?? {}
        calls.push({ toolCallId, toolName, arguments: args, ...(metadata && { metadata }) })
        return
      }
      case 'file': {
        const block = this.#block(part)
        if (block.type === 'image' || block.type === 'audio' || block.type === 'video') {
          content.push(block)
          return
        }
        break
      }
      default:
    }
    this.#warnings.push({
      type: 'unsupported',
      feature: `assistant ${type}`,
      details: 'This part of an answer cannot be sent back and was left out.',
    })
  }

  #joined(
    block: AssistantContent & { type: 'reasoning' },
    { text = '', providerOptions }: AiSdkPart,
  ): AssistantContent {
    const allText = [block.text, text].filter(Boolean).join('\n\n')
    const now = toMetadata(providerOptions, this.#model, { kind: 'reasoning', text: allText })
    return { type: 'reasoning', text: allText, ...(now && { metadata: now }) }
  }

  #result({ toolCallId = '', toolName = '', output, providerOptions }: AiSdkPart): ToolResult {
    const { type = 'text', value, reason } = output ?? {}
    const isError = type.startsWith('error') || type === 'execution-denied'
    const metadata = toMetadata(providerOptions ?? output?.providerOptions, this.#model)
    const blocks = (parts: readonly AiSdkPart[]): UserContent[] =>
      parts.filter((part) => part.type !== 'custom').map((part) => this.#block(part))
    const result =
      type === 'content'
        ? blocks(value as readonly AiSdkPart[]) // the AI SDK's own type of this output
        : type === 'execution-denied'
          ? (reason ?? 'The call was denied.')
          : value
    return {
      toolCallId,
      toolName,
      result,
      ...(isError && { isError }),
      ...(metadata && { metadata }),
    }
  }

  /** Reads a text or a file of a prompt. */
  #block(part: AiSdkPart): UserContent {
    const { type, text = '', mediaType = '', filename, providerOptions } = part
    const metadata = toMetadata(providerOptions, this.#model)
    const own = metadata && { metadata }
    if (type === 'text') return { type: 'text', text, ...own }
    const data = this.#data(part)
    const url =
      data instanceof URL
        ? data.href
        : typeof data === 'object' && 'address' in data
          ? data.address
          : undefined
    const bytes = (): Uint8Array =>
      typeof data === 'string' ? decodeLooseBase64(data) : (data as Uint8Array)
    const mimeType = isExact(mediaType) || url !== undefined ? mediaType : (mediaTypeOf(bytes()) ?? mediaType) // prettier-ignore
    const kind = mimeType.split('/')[0]
    const common = { mimeType, ...own }
    if ((kind === 'audio' || kind === 'video') && url === undefined)
      return { type: kind, data: bytes(), ...common }
    const base64 = (): string =>
      typeof data === 'string' ? strictBase64(data) : encodeBase64(bytes())
    const source =
      url === undefined
        ? ({ type: 'base64', data: base64() } as const)
        : ({ type: 'url', url } as const)
    if (kind === 'image') return { type: 'image', source, ...common }
    return { type: 'document', source, ...(filename && { title: filename }), ...common }
  }

  #data({ data = '' }: AiSdkPart): Uint8Array | string | URL | { readonly address: string } {
    if (typeof data === 'string' || data instanceof Uint8Array || data instanceof URL) return data
    switch (data.type) {
      case 'url':
        return data.url
      case 'data':
        return data.data
      case 'text':
        return new TextEncoder().encode(data.text)
      case 'reference': {
        const file = fromReference(data.reference, this.#model)
        if (file) return { address: fileAddress(file) }
        throw invalidRequest(
          'A file of the prompt is a reference without an id.',
          { provider: this.#model.provider, modality: 'llm' },
          'Name the vendor and its id of the file, or send the bytes.',
        )
      }
      default:
        return data satisfies never
    }
  }
}

/** False for `image` and `image/*`, which say less than the bytes. */
function isExact(mediaType: string): boolean {
  return /^[^/*]+\/[^*]+$/.test(mediaType)
}
