import type { Message } from '../contract/message.ts'
import { textOf } from './read-json.ts'

/**
 * Prepares the continuation of an answer that its vendor interrupted: the request is repeated with
 * the answer's token, which its metadata have under the name `field`, and without the messages produced so far.
 */
export function takeContinuation(
  messages: readonly Message[],
  provider: string,
  field: string,
): { readonly messages: readonly Message[]; readonly token?: string } {
  const tokenOf = (message: Message | undefined): string | undefined =>
    message?.type === 'assistant' ? textOf(message.metadata?.[provider]?.[field]) : undefined
  const token = tokenOf(messages.at(-1))
  if (token === undefined) return { messages }
  const end = messages.findLastIndex((message) => tokenOf(message) === undefined) + 1
  return { messages: messages.slice(0, end), token }
}
