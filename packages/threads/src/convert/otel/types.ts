/** Messages of the OpenTelemetry GenAI conventions (status: development), for span attributes and events. */
export interface OtelMessage {
  readonly role: 'user' | 'assistant' | 'tool'
  readonly parts: readonly OtelPart[]
  readonly name?: string
  /** On output messages. */
  readonly finish_reason?: string
}

export type OtelPart =
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
