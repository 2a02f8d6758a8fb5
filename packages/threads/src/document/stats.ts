import { toolCalls } from './tool-calls.ts'
import type { Thread, ThreadMessage, Usage } from './thread.ts'
import { ThreadError } from '../issue.ts'

/** The counts of a thread's contents, and its usage and cost. */
export interface ThreadStats {
  readonly turns: { readonly user: number; readonly agent: number }
  readonly messages: {
    readonly request: number
    readonly response: number
    readonly system: number
  }
  /** The number of parts by kind. */
  readonly parts: Readonly<Record<string, number>>
  /** The number of the application's tool calls by state. */
  readonly toolCalls: Readonly<Record<string, number>>
  readonly usage: UsageStats
  readonly byAgent: Readonly<Record<string, UsageStats>>
  readonly byModel: Readonly<Record<string, UsageStats>>
}

/** The usage of a thread, an agent or a model, and the number of responses. */
export interface UsageStats {
  readonly responses: number
  /** The sum of every counter, computed as Pydantic AI does. Empty when no response reported its usage. */
  readonly usage: Usage
  /** Input plus output tokens. A stored `total_tokens` is not used. */
  readonly totalTokens: number
  /** An exact decimal number as text; undefined when no response had a price. */
  readonly cost: string | undefined
}

/** Counts the contents of a thread and sums its usage, in total and by agent and model. */
export function threadStats(thread: Thread): ThreadStats {
  const turns = { user: 0, agent: 0 }
  const messages = { request: 0, response: 0, system: 0 }
  const parts = new Map<string, number>()
  const responses: ThreadMessage[] = []
  for (const turn of thread.turns) {
    if (turn.turn_type === 'user') {
      turns.user++
      for (const part of turn.parts) count(parts, part.part_kind)
      continue
    }
    // A turn of an unknown type is kept, but nothing is known of its contents.
    if (turn.turn_type !== 'agent') continue
    turns.agent++
    for (const message of turn.messages) {
      messages[message.message_type]++
      if (message.message_type === 'system') continue
      for (const part of message.parts) count(parts, part.part_kind)
      if (message.message_type === 'response') responses.push(message)
    }
  }
  const calls = new Map<string, number>()
  for (const { state } of toolCalls(thread)) count(calls, state)
  return {
    turns,
    messages,
    parts: Object.fromEntries(parts),
    toolCalls: Object.fromEntries(calls),
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

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

/**
 * Adds usages as Pydantic AI does: every counter, the nested `details`, and `cost` as exact decimal text.
 * Returns undefined when all counters, those in `details` too, are zero or absent and there is no cost.
 */
export function sumUsage(usages: Iterable<Usage | null | undefined>): Usage | undefined {
  const sum: { [key: string]: unknown } = {}
  const details: { [key: string]: unknown } = {}
  let cost: string | undefined
  let hasReport = false
  const add = (total: { [key: string]: unknown }, counters: object) => {
    for (const [key, value] of Object.entries(counters)) {
      if (typeof value !== 'number') continue
      total[key] = (Object.hasOwn(total, key) ? (total[key] as number) : 0) + value
      if (value !== 0) hasReport = true
    }
  }
  for (const usage of usages) {
    if (typeof usage !== 'object' || usage === null) continue
    const { cost: own, ...counters } = usage
    add(sum, counters)
    add(details, usage.details ?? {})
    const price = typeof own === 'string' || typeof own === 'number' ? String(own) : ''
    if (DECIMAL.test(price)) {
      cost = cost === undefined ? price : addDecimals(cost, price)
      hasReport = true
    }
  }
  if (!hasReport) return undefined
  if (Object.keys(details).length > 0) sum['details'] = details
  if (cost !== undefined) sum['cost'] = cost
  return sum
}

/** The form of a `cost` that can be added; any other text is left out of the sum. */
const DECIMAL = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?$/

const SHAPE = /^([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d+))?$/
/** A limit far beyond any price; without it, `1e999999999` would need a gigabyte of digits. */
const MAX_EXPONENT = 1_000

/**
 * Adds two decimal numbers given as text, exactly: without floating point, so a million prices of 0.1 sum to
 * 100000.0. The result has as many fraction digits as the operand that has more of them, like Python's
 * `Decimal`.
 */
export function addDecimals(a: string, b: string): string {
  const [left, right] = [parse(a), parse(b)]
  const scale = Math.max(left.scale, right.scale)
  return print(raise(left, scale) + raise(right, scale), scale)
}

interface Decimal {
  readonly digits: bigint
  readonly scale: number
}

function parse(text: string): Decimal {
  const match = SHAPE.exec(text.trim())
  const exponent = Number(match?.[3] ?? 0)
  if (!match || Math.abs(exponent) > MAX_EXPONENT) {
    throw new ThreadError(
      `The amount ${JSON.stringify(text.slice(0, 40))} is not a decimal number.`,
      {
        code: 'INVALID_DECIMAL',
        hint: 'Costs are decimal text such as "0.0125".',
      },
    )
  }
  const [whole = '', fraction = ''] = match[2]!.split('.')
  const digits = BigInt((match[1] === '-' ? '-' : '') + (whole + fraction || '0'))
  const scale = fraction.length - exponent
  return scale >= 0 ? { digits, scale } : { digits: digits * 10n ** BigInt(-scale), scale: 0 }
}

function raise({ digits, scale }: Decimal, to: number): bigint {
  return digits * 10n ** BigInt(to - scale)
}

function print(digits: bigint, scale: number): string {
  if (scale === 0) return digits.toString()
  const sign = digits < 0n ? '-' : ''
  const text = (digits < 0n ? -digits : digits).toString().padStart(scale + 1, '0')
  return `${sign}${text.slice(0, -scale)}.${text.slice(-scale)}`
}
