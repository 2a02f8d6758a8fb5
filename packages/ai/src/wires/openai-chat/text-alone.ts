import type { JsonObject } from '@skein/base'
import type { ChatChunk } from './types.ts'

/** The text of a chunk in which nothing else counts: one choice, its text, and fields that say null. */
export function textAlone({ choices, usage, error, x_groq }: ChatChunk): string | undefined {
  if (!Array.isArray(choices) || choices.length !== 1 || usage || error || x_groq) return undefined
  const { index, delta, finish_reason, logprobs, usage: its } = (choices[0] ?? {}) as Choice
  if (index || finish_reason || logprobs || its || typeof delta?.['content'] !== 'string')
    return undefined
  for (const key in delta)
    if (key !== 'content' && key !== 'role' && delta[key] !== null) return undefined
  return delta['content']
}

interface Choice {
  readonly index?: number
  readonly delta?: JsonObject
  readonly finish_reason?: string
  readonly logprobs?: JsonObject
  readonly usage?: JsonObject
}
