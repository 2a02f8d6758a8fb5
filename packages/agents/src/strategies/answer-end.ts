import type { StopReason, Turn } from '@skein/ai'
import { isMalformed } from '@skein/ai/engine'
import type { AgentStopReason } from '../contract/event.ts'

/** How often the model is asked again in one step after an answer that its vendor could not read. */
export const MAX_MALFORMED_RETRIES = 2

/** Returns why a run ends with an answer that requests no calls. */
export function endOfAnswer(turn: Turn): AgentStopReason {
  const ends: Readonly<Record<StopReason, AgentStopReason>> = {
    end_turn: 'complete',
    stop_sequence: 'complete',
    tool_use: 'complete',
    pause: 'complete',
    max_tokens: 'max_tokens',
    context_window: 'context_window',
    refusal: 'refusal',
    content_filter: 'content_filter',
    // Vendors have reasons of their own for whole answers too.
    other: isMalformed(turn) || turn.response.text === '' ? 'other' : 'complete',
  }
  return ends[turn.stopReason] ?? 'complete' // a model with only `generate` may give a reason of its own
}
