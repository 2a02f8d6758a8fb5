import { StopReason } from '../../contract/event.ts'

const known: Readonly<Record<string, StopReason>> = {
  end_turn: StopReason.EndTurn,
  max_tokens: StopReason.MaxTokens,
  stop_sequence: StopReason.StopSequence,
  tool_use: StopReason.ToolUse,
  pause_turn: StopReason.Pause,
  refusal: StopReason.Refusal,
  model_context_window_exceeded: StopReason.ContextWindow,
}

export function toStopReason(raw: string | undefined): StopReason {
  const reason = raw !== undefined && Object.hasOwn(known, raw) ? known[raw] : undefined
  return reason ?? StopReason.Other
}

/** The other direction, for the server half. */
const words: Readonly<Record<StopReason, string>> = {
  end_turn: 'end_turn',
  max_tokens: 'max_tokens',
  stop_sequence: 'stop_sequence',
  tool_use: 'tool_use',
  pause: 'pause_turn',
  refusal: 'refusal',
  content_filter: 'refusal',
  context_window: 'model_context_window_exceeded',
  other: 'end_turn',
}

export function fromStopReason(reason: StopReason): string {
  return words[reason]
}
