import { messageToJSON, type Message } from '@skein/ai'

/** Guesses the tokens of a message. */
export type EstimateTokens = (message: Message) => number

const known = new WeakMap<Message, number>()

/** Four characters of JSON are a token. Rough, cheap, and counted once per message. */
export function estimateTokens(message: Message): number {
  const before = known.get(message)
  if (before !== undefined) return before
  const tokens = lengthOf(message) / 4
  known.set(message, tokens)
  return tokens
}

function lengthOf(message: Message): number {
  try {
    return JSON.stringify(messageToJSON(message)).length
  } catch {
    return 0 // a result that JSON cannot say, e.g. a bigint; saving the state will tell
  }
}

export function sumTokens(messages: readonly Message[], estimate: EstimateTokens): number {
  return messages.reduce((sum, message) => sum + estimate(message), 0)
}
