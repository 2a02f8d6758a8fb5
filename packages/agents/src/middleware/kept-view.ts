import { isPlainObject, type JsonObject } from '@skein/base'
import { isToolResultMessage, type Message } from '@skein/ai'
import type { InferenceChanges, InferenceRequest } from '../contract/agent-types.ts'
import { withoutThinking, withoutLooseThinking } from './loose-thinking.ts'

/** The metadata entry of a state that holds the view of each policy. */
const VIEW = 'contextView'

/**
 * What a policy has made of the history, as ids of messages. A run keeps the messages that it has sent by itself; the
 * next run of the conversation begins with the whole history and makes the same view of it again. Otherwise its
 * requests would not begin like those before, and the vendor's prompt cache would miss.
 */
interface View {
  /** The first message of the part that is sent, and a question that is sent before it. */
  readonly start?: string
  readonly lead?: string
  /** The last message whose output is cleared; those before it are cleared too. */
  readonly cleared?: string
  /** The first and the last message without thinking. */
  readonly bareFrom?: string
  readonly bareTo?: string
}

/** A policy: its name, and how it clears an output if it does. */
export interface ContextPolicy {
  readonly name: string
  readonly clear?: (message: Message) => Message
}

/** Returns the request with the messages as the policy has left them in the request before, also in an earlier run. */
export function withKeptView(
  request: InferenceRequest,
  { name, clear = same }: ContextPolicy,
): InferenceRequest {
  const { messages, state } = request
  const { start, lead, cleared, bareFrom, bareTo } = viewOf(request, name)
  const at = (id: string | undefined): number =>
    id === undefined ? -1 : messages.findIndex((message) => message.id === id)
  const [first, question, clearTo] = [at(start), at(lead), at(cleared)]
  // If the application has removed the message from the history, nothing is known about the thinking in it.
  const isRemoved = bareTo !== undefined && !state.messages.some(({ id }) => id === bareTo)
  const [thoughtFrom, thoughtTo] = isRemoved ? [0, Infinity] : [at(bareFrom), at(bareTo)]
  const view = messages.flatMap((message, index) => {
    if (index < first && index !== question) return []
    const output = index <= clearTo ? clear(message) : message
    return index >= thoughtFrom && index <= thoughtTo ? withoutThinking(output) : output
  })
  const isSame =
    view.length === messages.length && view.every((one, index) => one === messages[index])
  return isSame ? request : { ...request, messages: view }
}

/** Returns the changes that send `after` instead of the messages of the request, and the view to keep. */
export function changedView(
  request: InferenceRequest,
  after: readonly Message[],
  { name, clear = same }: ContextPolicy,
): InferenceChanges {
  const { messages: before, state } = request
  const first = after.findIndex((message, index) => message !== before[index])
  if (first < 0) return { messages: after }
  const messages = withoutLooseThinking(before, after)
  const history = new Map(state.messages.map(({ id }, index) => [id, index]))
  const ids = after.map(({ id }) => id)
  const [at, next] = ids.map((id) => history.get(id))
  // A message that is not in the history, e.g. a summary, has been put in place of what is left out by its policy.
  const isCut = at !== undefined
  const isLed = isCut && next !== undefined && next !== at + 1
  const old = viewOf(request, name)
  const oldFrom = old.bareFrom === undefined ? -1 : ids.indexOf(old.bareFrom)
  const clearedAt = after.findLastIndex(
    (one) => isToolResultMessage(one) && clear(one) === one && clear !== same,
  )
  const view: View = {
    start: isCut ? ids[isLed ? 1 : 0] : undefined,
    lead: isLed ? ids[0] : undefined,
    cleared: ids[clearedAt],
    bareFrom:
      oldFrom >= 0 && oldFrom < first
        ? old.bareFrom
        : ids.slice(first).find((id) => history.has(id)),
    bareTo: ids.at(-1),
  }
  const views = state.metadata[VIEW]
  const others = isPlainObject(views) ? (views as JsonObject) : {}
  // Fields without a value are left out, because the metadata is JSON.
  const entry = JSON.parse(JSON.stringify(view)) as JsonObject
  return { messages, metadata: { [VIEW]: { ...others, [name]: entry } } }
}

function viewOf({ state }: InferenceRequest, name: string): View {
  const views = state.metadata[VIEW]
  const view = isPlainObject(views) ? views[name] : undefined
  if (!isPlainObject(view)) return {}
  const texts = Object.entries(view).filter(([, id]) => typeof id === 'string')
  return Object.fromEntries(texts) // entries with names that it does not have are not read
}

function same(message: Message): Message {
  return message
}
