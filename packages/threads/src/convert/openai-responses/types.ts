/** The items of OpenAI's Responses and Conversations APIs that threads know; any other item is kept whole. */
export type ResponsesItem =
  | ResponsesMessage
  | ResponsesReasoning
  | ResponsesFunctionCall
  | ResponsesFunctionOutput
  | ResponsesOtherItem

export interface ResponsesMessage {
  readonly type?: 'message'
  readonly role: 'user' | 'assistant' | 'system' | 'developer'
  readonly content: string | readonly ResponsesContent[]
  readonly id?: string
  readonly status?: string
}

export type ResponsesContent =
  | { readonly type: 'input_text'; readonly text: string }
  | {
      readonly type: 'output_text'
      readonly text: string
      readonly annotations?: readonly unknown[]
    }
  | { readonly type: 'refusal'; readonly refusal: string }
  | {
      readonly type: 'input_image'
      readonly image_url?: string | null
      readonly file_id?: string | null
      readonly detail?: string
    }
  | {
      readonly type: 'input_file'
      readonly file_data?: string
      readonly file_url?: string
      readonly file_id?: string | null
      readonly filename?: string
    }

export interface ResponsesReasoning {
  readonly type: 'reasoning'
  readonly id: string
  readonly summary: readonly { readonly type: 'summary_text'; readonly text: string }[]
  readonly encrypted_content?: string | null
}

export interface ResponsesFunctionCall {
  readonly type: 'function_call'
  readonly call_id: string
  readonly name: string
  /** JSON text, as the model wrote it. */
  readonly arguments: string
  readonly id?: string
  readonly status?: string
}

export interface ResponsesFunctionOutput {
  readonly type: 'function_call_output'
  readonly call_id: string
  readonly output: string | readonly unknown[]
  readonly id?: string | null
  readonly status?: string
}

/** Computer use, web search, MCP and whatever comes. */
export interface ResponsesOtherItem {
  readonly type:
    `${string}_call` | 'item_reference' | 'compaction' | (string & { readonly other?: never })
  readonly [field: string]: unknown
}
