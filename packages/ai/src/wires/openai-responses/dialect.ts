import type { ToolCallIdRule } from '../transcript.ts'

/** Where a vendor departs from OpenAI's Responses. Parameters are never part of it. */
export interface OpenAIResponsesDialect {
  /** Kinds of input beside text. Others are refused before anything is sent. */
  readonly media: readonly ('image' | 'document')[]
  /** Ids that break the rule are replaced by a hash of them. */
  readonly toolCallId: ToolCallIdRule
}

/** What OpenAI itself takes. */
export const responsesDialect: OpenAIResponsesDialect = {
  media: ['image', 'document'],
  toolCallId: { pattern: /^[^]+$/, maxLength: 64 },
}
