import { toolCalls } from './tool-calls.ts'
import type { Thread, ThreadMessage, Usage } from './types.ts'
import { sumUsage } from './usage.ts'

/** What a thread consists of and what it cost. */
export interface ThreadStats {
  readonly turns: { readonly user: number; readonly agent: number }
  readonly messages: {
    readonly request: number
    readonly response: number
    readonly system: number
  }
  /** Parts by kind. */
  readonly parts: Readonly<Record<string, number>>
  /** Local tool calls by state. */
  readonly toolCalls: Readonly<Record<string, number>>
  readonly usage: UsageStats
  readonly byAgent: Readonly<Record<string, UsageStats>>
  readonly byModel: Readonly<Record<string, UsageStats>>
}

export interface UsageStats {
  readonly responses: number
  /** Summed as Pydantic AI does; totals are inclusive. Empty when nothing was reported. */
  readonly usage: Usage
  /** Input plus output. A stored `total_tokens` is neither trusted nor added. */
  readonly totalTokens: number
  /** Decimal text, exact; undefined when no response had a price. */
  readonly cost: string | undefined
}

/** Counts a thread and sums its usage, whole and by agent and model. */
export function threadStats(thread: Thread): ThreadStats {
  const turns = { user: 0, agent: 0 }
  const messages = { request: 0, response: 0, system: 0 }
  const parts = new Counter()
  const responses: ThreadMessage[] = []
  for (const turn of thread.turns) {
    if (turn.turn_type === 'user') {
      turns.user++
      for (const part of turn.parts) parts.add(part.part_kind)
      continue
    }
    turns.agent++
    for (const message of turn.messages) {
      messages[message.message_type]++
      if (message.message_type === 'system') continue
      for (const part of message.parts) parts.add(part.part_kind)
      if (message.message_type === 'response') responses.push(message)
    }
  }
  const calls = new Counter()
  for (const { state } of toolCalls(thread)) calls.add(state)
  return {
    turns,
    messages,
    parts: parts.record(),
    toolCalls: calls.record(),
    usage: usageOf(responses),
    byAgent: groupUsage(responses, (message) => message.agent_id),
    byModel: groupUsage(responses, (message) => message.model_name ?? 'unknown'),
  }
}

function groupUsage(
  responses: readonly ThreadMessage[],
  keyOf: (message: ThreadMessage) => string,
): Readonly<Record<string, UsageStats>> {
  const groups = new Map<string, ThreadMessage[]>()
  for (const message of responses) {
    const group = groups.get(keyOf(message))
    if (group) group.push(message)
    else groups.set(keyOf(message), [message])
  }
  return Object.fromEntries([...groups].map(([key, group]) => [key, usageOf(group)]))
}

function usageOf(responses: readonly ThreadMessage[]): UsageStats {
  const usage = sumUsage(responses.map((message) => message.usage)) ?? {}
  const { input_tokens = 0, output_tokens = 0, cost } = usage
  return {
    responses: responses.length,
    usage,
    totalTokens: input_tokens + output_tokens,
    cost: cost === undefined || cost === null ? undefined : String(cost),
  }
}

class Counter {
  readonly #counts = new Map<string, number>()

  add(key: string): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
  }

  record(): Record<string, number> {
    return Object.fromEntries(this.#counts)
  }
}
