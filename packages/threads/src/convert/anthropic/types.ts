/** Anthropic's messages, as far as threads know them; any other block is kept whole. */
export interface AnthropicMessage {
  readonly role: 'user' | 'assistant'
  readonly content: string | readonly AnthropicBlock[]
}

export type AnthropicBlock =
  | AnthropicTextBlock
  | AnthropicThinkingBlock
  | AnthropicRedactedBlock
  | AnthropicToolUseBlock
  | AnthropicToolResultBlock
  | AnthropicMediaBlock
  | AnthropicOtherBlock

export interface AnthropicTextBlock {
  readonly type: 'text'
  readonly text: string
}

export interface AnthropicThinkingBlock {
  readonly type: 'thinking'
  readonly thinking: string
  readonly signature: string
}

export interface AnthropicRedactedBlock {
  readonly type: 'redacted_thinking'
  readonly data: string
}

export interface AnthropicToolUseBlock {
  readonly type: 'tool_use'
  readonly id: string
  readonly name: string
  readonly input: unknown
}

export interface AnthropicToolResultBlock {
  readonly type: 'tool_result'
  readonly tool_use_id: string
  readonly content?: string | readonly unknown[]
  readonly is_error?: boolean
}

export interface AnthropicMediaBlock {
  readonly type: 'image' | 'document'
  readonly source:
    | { readonly type: 'base64'; readonly media_type: string; readonly data: string }
    | { readonly type: 'url'; readonly url: string }
    | { readonly type: 'file'; readonly file_id: string }
    | { readonly type: 'text'; readonly media_type: 'text/plain'; readonly data: string }
}

export interface AnthropicOtherBlock {
  readonly type: string & { readonly other?: never }
  readonly [field: string]: unknown
}
