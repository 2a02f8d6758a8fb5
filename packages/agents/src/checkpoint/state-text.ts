import { isDeepFrozen } from '@skein/base'
import type { AgentStateJSON } from '../state.ts'

type MessageJSON = AgentStateJSON['messages'][number]

/** Text of messages that cannot change any more: a save writes anew only what is new. */
const texts = new WeakMap<MessageJSON, string>()

/** The JSON text of a state. A checkpoint per step would else turn all messages into text each time. */
export function stateText({ messages, ...rest }: AgentStateJSON): string {
  const head = JSON.stringify(rest)
  return `${head.slice(0, -1)},"messages":[${messages.map(messageText).join(',')}]}`
}

function messageText(message: MessageJSON): string {
  const known = texts.get(message)
  if (known !== undefined) return known
  const text = JSON.stringify(message)
  if (isDeepFrozen(message)) texts.set(message, text)
  return text
}
