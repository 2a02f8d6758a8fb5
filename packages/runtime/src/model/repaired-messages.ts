import {
  AssistantMessage,
  ToolResultMessage,
  UserMessage,
  type Message,
  type ToolResult,
} from '@skein/ai'
import { sameAs } from './message-copies.ts'
import { remembered } from './message-copies.ts'

/**
 * Repairs the messages of a request that hooks have changed, so that vendors accept them: each result
 * follows the message with its call; results without a call, calls without a result, messages without
 * content and repeated messages are left out; a call id that is used twice is changed the second time;
 * the model has neither the first nor the last message. Returns the given list if nothing is wrong, and
 * an empty list if no message is left.
 */
export function repairedMessages(messages: readonly Message[]): readonly Message[] {
  const result: Message[] = []
  const ids = new Set<string>()
  const callIds = new Set<string>()
  for (const [place, message] of messages.entries()) {
    if (ids.has(message.id) || message.type === 'tool_result') continue
    ids.add(message.id)
    if (message.type === 'user' && hasContent(message)) result.push(message)
    if (message.type !== 'assistant') continue
    const parts = withItsResults(messages, place, message)
    result.push(...withNewIds(parts, callIds))
  }
  const first = result[0]
  if (first?.type === 'assistant') result.unshift(openingOf(first))
  const last = result.at(-1)
  if (last?.type === 'assistant') {
    const { id, timestamp } = last
    const make = () => new UserMessage('Go on.', { id: `${id}.nudge`, timestamp })
    result.push(remembered(nudges, last, make))
  }
  const isSame =
    result.length === messages.length && result.every((one, at) => one === messages[at])
  return isSame ? messages : result
}

/** Whether a vendor accepts the message even without its calls: it has media, or text that is not empty. */
function hasContent({ content }: UserMessage | AssistantMessage): boolean {
  return content.some((block) =>
    block.type === 'text' ? block.text.trim() !== '' : block.type !== 'reasoning',
  )
}

/** Returns a message of the model with only the calls that have a result, and one message with these results. */
function withItsResults(
  messages: readonly Message[],
  place: number,
  message: AssistantMessage,
): readonly Message[] {
  const { toolCalls = [] } = message
  const pairs = toolCalls.flatMap((call) => {
    const match = resultOf(messages, place, call.toolCallId)
    return match ? [{ call, ...match }] : []
  })
  if (pairs.length === 0) {
    if (!hasContent(message)) return []
    if (toolCalls.length === 0) return [message]
    return [new AssistantMessage(message.content, undefined, sameAs(message))]
  }
  const calls = pairs.map(({ call }) => call)
  const isWhole = calls.length === toolCalls.length
  const answer = isWhole ? message : new AssistantMessage(message.content, calls, sameAs(message))
  const next = messages[place + 1]
  const isInPlace =
    next?.type === 'tool_result' &&
    next.results.length === pairs.length &&
    pairs.every(({ from }) => from === next)
  if (isInPlace) return [answer, next]
  const { id, timestamp } = message
  const results = pairs.map(({ call: { toolName }, result }) => ({ ...result, toolName }))
  return [answer, new ToolResultMessage(results, { id: `${id}.results`, timestamp })]
}

/** Changes call ids that an earlier message has used already, in the calls and in their results. */
function withNewIds(shown: readonly Message[], used: Set<string>): readonly Message[] {
  const [said, answered] = shown
  if (said?.type !== 'assistant' || answered?.type !== 'tool_result') return shown
  const newIds = new Map<string, string>()
  for (const { toolCallId } of said.toolCalls ?? []) {
    let id = toolCallId
    for (let n = 2; used.has(id); n++) id = `${toolCallId.slice(0, 30)}-${n}`
    used.add(id)
    if (id !== toolCallId) newIds.set(toolCallId, id)
  }
  if (newIds.size === 0) return shown
  const withNewId = <T extends { readonly toolCallId: string }>(one: T): T => ({
    ...one,
    toolCallId: newIds.get(one.toolCallId) ?? one.toolCallId,
  })
  const calls = said.toolCalls?.map(withNewId)
  return [
    new AssistantMessage(said.content, calls, sameAs(said)),
    new ToolResultMessage(answered.results.map(withNewId), sameAs(answered)),
  ]
}

/**
 * Finds the result of a call: the first one after the call or, if there is none, the last one before it.
 * The search ends at another message that has a call of the same id, because vendors may use an id again.
 */
function resultOf(
  messages: readonly Message[],
  place: number,
  toolCallId: string,
): { readonly result: ToolResult; readonly from: ToolResultMessage } | undefined {
  for (const step of [1, -1])
    for (let at = place + step; at >= 0 && at < messages.length; at += step) {
      const from = messages[at]!
      if (
        from.type === 'assistant' &&
        from.toolCalls?.some((call) => call.toolCallId === toolCallId)
      )
        break
      const results = from.type === 'tool_result' ? from.results : []
      const result = results.find((one) => one.toolCallId === toolCallId)
      if (result) return { result, from: from as ToolResultMessage } // only such messages have results
    }
  return undefined
}

/** Returns the user message that is put first if the view would otherwise begin with a message of the model. */
export function openingOf(first: AssistantMessage): Message {
  const { id, timestamp } = first
  const make = () => new UserMessage('Begin.', { id: `${id}.opening`, timestamp })
  return remembered(openings, first, make)
}

const openings = new WeakMap<Message, Message>()

const nudges = new WeakMap<Message, Message>()
