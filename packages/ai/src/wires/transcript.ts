import type { JsonObject, JsonValue } from '@skein/base'
import type { AssistantContent } from '../contract/content.ts'
import type { BlockKind } from '../contract/event.ts'
import { type AssistantMessage, type Message, ToolResultMessage } from '../contract/message.ts'
import type { ToolCall, ToolResult } from '../contract/tool.ts'
import type { Warning } from '../contract/turn.ts'

/**
 * Repairs a conversation so that every vendor accepts it: each tool call is answered exactly once, before
 * the next message. A missing result is replaced by an error result, and a result without an open call is
 * dropped; each adds a warning. Messages that need no repair are returned as the same objects.
 */
export function repairTranscript(
  messages: readonly Message[],
  warnings: Warning[] = [],
): readonly Message[] {
  if (isWhole(messages)) return messages
  const repaired: Message[] = []
  let index = 0
  while (index < messages.length) {
    const message = messages[index++]!
    if (message.type === 'tool_result') {
      dropOrphans(message.results, warnings)
      continue
    }
    repaired.push(message)
    if (message.type !== 'assistant' || !message.toolCalls?.length) continue
    const start = index
    while (messages[index]?.type === 'tool_result') index++
    // The slice contains only tool results, as the loop above has checked.
    const answers = messages.slice(start, index) as ToolResultMessage[]
    for (const answer of answerCalls(message, answers, warnings)) repaired.push(answer)
  }
  const isSame =
    messages.length === repaired.length && messages.every((message, at) => message === repaired[at])
  return isSame ? messages : repaired
}

/**
 * Checks whether a conversation needs no repair. The check runs before every request, so it allocates
 * nothing.
 */
export function isWhole(messages: readonly Message[]): boolean {
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]!
    if (message.type === 'tool_result') return false
    if (message.type !== 'assistant' || !message.toolCalls?.length) continue
    const next = messages[++index]
    if (next?.type !== 'tool_result' || !answersInOrder(message.toolCalls, next.results))
      return false
  }
  return true
}

function answerCalls(
  message: AssistantMessage,
  answers: readonly ToolResultMessage[],
  warnings: Warning[],
): readonly ToolResultMessage[] {
  const calls = message.toolCalls!
  if (answers.length === 1 && answersInOrder(calls, answers[0]!.results)) return answers
  const open = new Map<string, number>()
  for (const { toolCallId } of calls) open.set(toolCallId, (open.get(toolCallId) ?? 0) + 1)
  const kept = answers.flatMap((answer) => {
    const orphans: ToolResult[] = []
    const results = answer.results.filter((result) => {
      const isOpen = takeOne(open, result.toolCallId)
      if (!isOpen) orphans.push(result)
      return isOpen
    })
    if (orphans.length === 0) return [answer]
    dropOrphans(orphans, warnings)
    if (results.length === 0) return []
    const { id, timestamp, metadata } = answer
    return [new ToolResultMessage(results, { id, timestamp, metadata })]
  })
  const missing = calls.filter(({ toolCallId }) => takeOne(open, toolCallId))
  if (missing.length > 0) kept.push(unanswered(message, missing, warnings))
  return kept
}

function answersInOrder(calls: readonly ToolCall[], results: readonly ToolResult[]): boolean {
  if (calls.length !== results.length) return false
  for (let index = 0; index < calls.length; index++) {
    if (calls[index]!.toolCallId !== results[index]!.toolCallId) return false
  }
  return true
}

function takeOne(open: Map<string, number>, id: string): boolean {
  const count = open.get(id) ?? 0
  if (count > 0) open.set(id, count - 1)
  return count > 0
}

function dropOrphans(results: readonly ToolResult[], warnings: Warning[]): void {
  for (const { toolCallId } of results) {
    warnings.push({
      code: 'orphan_tool_result_dropped',
      message: `The result of tool call "${toolCallId}" answers no open call and was not sent.`,
    })
  }
}

function unanswered(
  message: AssistantMessage,
  calls: readonly ToolCall[],
  warnings: Warning[],
): ToolResultMessage {
  for (const { toolCallId, toolName } of calls) {
    warnings.push({
      code: 'missing_tool_result',
      message: `Tool call "${toolCallId}" (${toolName}) has no result; an error result was sent.`,
    })
  }
  const results = calls.map(({ toolCallId, toolName }) => ({
    toolCallId,
    toolName,
    result: 'This tool call was not executed.',
    isError: true,
  }))
  const { id, timestamp } = message
  return new ToolResultMessage(results, { id: `${id}-unanswered`, timestamp })
}

/** One content block or one call of a message. */
export type OrderedBlock =
  | { readonly block: AssistantContent; readonly call?: never }
  | { readonly call: ToolCall; readonly block?: never }

/**
 * Returns content and calls of an assistant message in their original order, if that order is stored
 * under `metadata[provider].order`; otherwise all calls come after the content.
 */
export function orderedBlocks(
  message: AssistantMessage,
  provider: string,
): readonly OrderedBlock[] {
  const { content } = message
  const calls = message.toolCalls ?? []
  const order = message.metadata?.[provider]?.['order']
  // An order that does not match, because the message was edited, is ignored.
  const callCount = Array.isArray(order) ? order.filter((kind) => kind === 'call').length : -1
  const fits =
    callCount === calls.length &&
    (order as readonly JsonValue[]).length === content.length + calls.length
  if (!Array.isArray(order) || !fits) {
    return [...content.map((block) => ({ block })), ...calls.map((call) => ({ call }))]
  }
  let block = 0
  let call = 0
  return order.map((kind) =>
    kind === 'call' ? { call: calls[call++]! } : { block: content[block++]! },
  )
}

/**
 * Returns the message metadata that `orderedBlocks` reads: `{ order }` if a call came before a content
 * block, empty if all calls came last.
 */
export function orderMetadata(kinds: readonly BlockKind[]): JsonObject {
  const firstCall = kinds.indexOf('tool_call')
  const isInterleaved =
    firstCall >= 0 && kinds.slice(firstCall).some((kind) => kind !== 'tool_call')
  if (!isInterleaved) return {}
  return { order: kinds.map((kind) => (kind === 'tool_call' ? 'call' : 'block')) }
}

/** Returns a function that finds the name of a called tool, for vendors that match results by name. */
export function toolNameOf(
  messages: readonly Message[],
): (toolCallId: string) => string | undefined {
  let names: Map<string, string> | undefined
  return (toolCallId) => {
    if (!names) {
      names = new Map()
      for (const message of messages) {
        if (message.type !== 'assistant') continue
        for (const call of message.toolCalls ?? []) names.set(call.toolCallId, call.toolName)
      }
    }
    return names.get(toolCallId)
  }
}

/** The tool-call ids that a vendor accepts. */
export interface ToolCallIdRule {
  /** Must not be global or sticky, because such patterns keep a position from one `test` to the next. */
  readonly pattern: RegExp
  readonly maxLength: number
}

/**
 * Returns the id if the vendor accepts it, otherwise an id made from its hash. Equal ids give equal
 * hashes, so a call and its result still match.
 */
export function safeToolCallId(id: string, { pattern, maxLength }: ToolCallIdRule): string {
  if (id.length <= maxLength && pattern.test(id)) return id
  const hash = idHash(id)
  const named = `call_${hash}`.slice(0, Math.min(maxLength, 40))
  return pattern.test(named) && maxLength >= 16 ? named : hash.slice(0, maxLength)
}

/**
 * Returns a hash of 160 bits in hexadecimal: five rounds similar to FNV-1a, each with a different start
 * and factor. The hash only has to differ between the ids of one conversation, so it is not
 * cryptographic. SHA-256 would add a kilobyte to every application.
 */
function idHash(id: string): string {
  let hex = ''
  for (let round = 1; round <= 5; round++) {
    let hash = 0x811c9dc5 ^ Math.imul(round, 0x9e3779b9)
    for (let index = 0; index < id.length; index++)
      hash = Math.imul(hash ^ id.charCodeAt(index), 0x01000193 + (round << 10))
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
    hex += ((hash ^ (hash >>> 13)) >>> 0).toString(16).padStart(8, '0')
  }
  return hex
}
