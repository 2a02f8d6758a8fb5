/**
 * The UPP message shapes (UPP-1.3.1 §6), written structurally so that this package needs no import of a UPP
 * implementation: any object with these fields will do, in memory (`Date`, bytes) or as JSON (ISO text, base64).
 */

/** An image, by one of its three sources. */
export type UppImageSource =
  | { readonly type: 'base64'; readonly data: string }
  | { readonly type: 'url'; readonly url: string }
  | { readonly type: 'bytes'; readonly data: Uint8Array | string }

/** A document, by one of its three sources. */
export type UppDocumentSource =
  | { readonly type: 'base64'; readonly data: string }
  | { readonly type: 'url'; readonly url: string }
  | { readonly type: 'text'; readonly data: string }

export interface UppTextBlock {
  readonly type: 'text'
  readonly text: string
}

export interface UppReasoningBlock {
  readonly type: 'reasoning'
  readonly text: string
}

export interface UppImageBlock {
  readonly type: 'image'
  readonly source: UppImageSource
  readonly mimeType: string
}

export interface UppDocumentBlock {
  readonly type: 'document'
  readonly source: UppDocumentSource
  readonly mimeType: string
  readonly title?: string
}

export interface UppMediaBlock {
  readonly type: 'audio' | 'video' | 'binary'
  readonly data: Uint8Array | string
  readonly mimeType: string
}

/** Every content block a UPP message can hold. */
export type UppContentBlock =
  UppTextBlock | UppReasoningBlock | UppImageBlock | UppDocumentBlock | UppMediaBlock

export interface UppToolCall {
  readonly toolCallId: string
  readonly toolName: string
  readonly arguments: unknown
}

export interface UppToolResult {
  readonly toolCallId: string
  readonly result: unknown
  readonly isError?: boolean
}

interface UppMessageBase {
  readonly id: string
  readonly timestamp: Date | string
  /** Provider-namespaced metadata: `{ anthropic: { … } }`. */
  readonly metadata?: { readonly [provider: string]: unknown } | undefined
}

export interface UppUserMessage extends UppMessageBase {
  readonly type: 'user'
  readonly content: readonly UppContentBlock[]
}

export interface UppAssistantMessage extends UppMessageBase {
  readonly type: 'assistant'
  readonly content: readonly UppContentBlock[]
  readonly toolCalls?: readonly UppToolCall[] | undefined
}

export interface UppToolResultMessage extends UppMessageBase {
  readonly type: 'tool_result'
  readonly results: readonly UppToolResult[]
}

/** One UPP message. */
export type UppMessage = UppUserMessage | UppAssistantMessage | UppToolResultMessage
