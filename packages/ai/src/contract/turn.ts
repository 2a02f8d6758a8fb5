import type { JsonValue, RecordedArguments } from '@skein/base'
import type { StopReason } from './event.ts'
import type { AssistantMessage, Message } from './message.ts'
import type { DeferRequest } from './tool.ts'
import type { ToolTypes } from './tool-types.ts'

/**
 * The complete result of one `generate` or `stream` call (UPP §7.1). Frozen. `Data` is the type of a
 * checked structured answer, `Calls` has the types of the calls and results of the given tools.
 */
export interface Turn<Data = unknown, Calls extends ToolTypes = ToolTypes> {
  /** The inputs and all produced messages, in order; the history before the inputs is not included. */
  readonly messages: readonly Message[]
  readonly response: AssistantMessage
  /** The text of `response`. */
  readonly text: string
  readonly toolExecutions: readonly Calls['execution'][]
  readonly usage: TokenUsage
  /** One entry per inference, with the vendor's raw numbers. */
  readonly usageByCycle: readonly TokenUsage[]
  readonly cycles: number
  /**
   * The parsed answer, if `structure` was given. Its type is `UncheckedData` unless `validate: true` has checked it. It is
   * missing while calls are open (`openCalls`), because then the answer is still to come.
   */
  readonly data: Data
  readonly stopReason: StopReason
  readonly rawStopReason?: string
  readonly warnings: readonly Warning[]
  /** The pages and documents that the answers cite, each once, in the order of their first citation. */
  readonly sources: readonly Source[]
  /**
   * Calls of `response` without a result: the limit of rounds was reached or is 0, or a call was deferred.
   */
  readonly openCalls: readonly OpenCall[]
}

/** A call left open at the end of a turn; `request` describes what it waits for, if it was deferred. */
export interface OpenCall {
  readonly toolCallId: string
  readonly request?: DeferRequest
  /**
   * The parsed arguments of a call that waits, for a tool that parses them: what a person has to be shown, and what
   * `CallPorts.parsed` takes when the call is run.
   */
  readonly parsed?: RecordedArguments
}

/**
 * Tokens of one inference or of a whole turn. `inputTokens` includes cache reads and writes for
 * every vendor (as OpenTelemetry defines it), so totals are comparable.
 */
export interface TokenUsage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly totalTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
  /** Part of `outputTokens` spent on reasoning, where the vendor reports it. */
  readonly reasoningTokens?: number
  /** Parts of `cacheWriteTokens` by time to live, e.g. `{ '5m': 10, '1h': 0 }`. */
  readonly cacheWriteTokensByTtl?: Readonly<Record<string, number>>
  /** Parts of input and output by modality, e.g. `{ inputAudio: 3, outputImage: 7 }`. */
  readonly tokensByModality?: Readonly<Record<string, number>>
  /** Uses of vendor-side tools, e.g. `{ web_search_requests: 2 }`. */
  readonly serverToolUse?: Readonly<Record<string, number>>
  /** The cost in US dollars, as reported by the vendor or computed by the cost middleware. */
  readonly costUsd?: number
  /** The vendor's own usage object. Present on the usage of one inference, not on sums. */
  readonly raw?: JsonValue
}

/** A usage of zero, the start value for sums. */
export const zeroUsage: TokenUsage = Object.freeze({
  inputTokens: 0,
  outputTokens: 0,
  totalTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
})

/**
 * Adds two usages field by field; an optional field is set if either usage has it. A count that a provider of
 * the application leaves out is zero.
 */
export function addUsage(a: TokenUsage, b: TokenUsage): TokenUsage {
  return Object.freeze({
    inputTokens: addNumbers(a.inputTokens, b.inputTokens) ?? 0,
    outputTokens: addNumbers(a.outputTokens, b.outputTokens) ?? 0,
    totalTokens: addNumbers(a.totalTokens, b.totalTokens) ?? 0,
    cacheReadTokens: addNumbers(a.cacheReadTokens, b.cacheReadTokens) ?? 0,
    cacheWriteTokens: addNumbers(a.cacheWriteTokens, b.cacheWriteTokens) ?? 0,
    reasoningTokens: addNumbers(a.reasoningTokens, b.reasoningTokens),
    cacheWriteTokensByTtl: addRecords(a.cacheWriteTokensByTtl, b.cacheWriteTokensByTtl),
    tokensByModality: addRecords(a.tokensByModality, b.tokensByModality),
    serverToolUse: addRecords(a.serverToolUse, b.serverToolUse),
    costUsd: addNumbers(a.costUsd, b.costUsd),
  })
}

function addNumbers(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : a + b
}

type Counts = Readonly<Record<string, number>>

function addRecords(a: Counts | undefined, b: Counts | undefined): Counts | undefined {
  if (!a || !b) return a ?? b
  const sum: Record<string, number> = { ...a }
  for (const [key, count] of Object.entries(b)) sum[key] = (sum[key] ?? 0) + count
  return sum
}

/**
 * A page or document that an answer cites. Pages that the vendor only searched are not included; they are in
 * the native blocks and the metadata of the message.
 */
export interface Source {
  readonly type: 'url' | 'document'
  /** The address of the page, if `type` is `url`. */
  readonly url?: string
  /**
   * If `type` is `document`: the vendor's id of the document or file, or the position of the document in the
   * request (Anthropic, Mistral).
   */
  readonly id?: string
  readonly title?: string
  /** The citations as the vendor sent them, with quotes and places in the answer. */
  readonly originals: readonly JsonValue[]
}

/** Adds sources to a list. A source that is already in the list only gets more `originals`. */
export function addSources(known: readonly Source[], more: readonly Source[]): readonly Source[] {
  if (more.length === 0) return known
  const all = new Map<string, Source & { readonly originals: JsonValue[] }>()
  for (const source of [...known, ...more]) {
    const key = `${source.type} ${source.url ?? source.id}`
    const before = all.get(key)
    if (before) for (const original of source.originals) before.originals.push(original)
    else all.set(key, { ...source, originals: [...source.originals] })
  }
  return [...all.values()]
}

/** Reports that a part of the caller's request was dropped or changed before it was sent to the vendor. */
export interface Warning {
  /** A stable identifier, e.g. `unsupported_block`, `schema_changed`, `foreign_reasoning_dropped`. */
  readonly code: string
  readonly message: string
  /** JSON pointer to the affected part of the request, if there is one. */
  readonly pointer?: string
}
