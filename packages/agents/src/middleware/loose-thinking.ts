import { isPlainObject } from '@skein/base'
import { AssistantMessage, isAssistantMessage, type Message } from '@skein/ai'

/** Each message is stripped once and the result is reused, so that the vendor's prompt cache stays valid. */
const strippedForms = new WeakMap<AssistantMessage, AssistantMessage>()

/**
 * Removes the thinking behind the first message that differs from what the model was sent before. The newest models of
 * Anthropic bind thinking to the messages before it and refuse a request in which those have changed. Reasoning of
 * other vendors stays: OpenAI refuses calls without the reasoning that led to them, Gemini without its signature.
 */
export function withoutLooseThinking(
  before: readonly Message[],
  after: readonly Message[],
): readonly Message[] {
  const first = after.findIndex((message, index) => message !== before[index])
  if (first < 0) return after
  return after.map((message, index) => (index >= first ? withoutThinking(message) : message))
}

/** Returns the message without thinking that is bound to the messages before it. */
export function withoutThinking(message: Message): Message {
  return isAssistantMessage(message) ? stripped(message) : message
}

function stripped(message: AssistantMessage): AssistantMessage {
  let form = strippedForms.get(message)
  if (form) return form
  const isLoose = message.content.map(
    ({ type, metadata }) =>
      type === 'reasoning' &&
      Object.values(metadata ?? {}).some(({ api }) => api === 'anthropic-messages'),
  )
  form = isLoose.includes(true) ? withoutBlocks(message, isLoose) : message
  strippedForms.set(message, form)
  return form
}

function withoutBlocks(message: AssistantMessage, isLeftOut: readonly boolean[]): AssistantMessage {
  const { id, timestamp, content, toolCalls } = message
  const rest = content.filter((_, index) => !isLeftOut[index])
  // The wire keeps the order of blocks and calls as one list of kinds, which must fit the blocks that are left.
  const entries = Object.entries(message.metadata ?? {}).map(([provider, own]) => {
    if (!isPlainObject(own) || !Array.isArray(own['order'])) return [provider, own]
    let block = 0
    const order = own['order'].filter((kind) => kind !== 'block' || !isLeftOut[block++])
    return [provider, { ...own, order }]
  })
  const metadata = Object.fromEntries(entries) as typeof message.metadata // a copy with fewer entries in `order`
  return new AssistantMessage(rest, toolCalls, { id, timestamp, metadata })
}
