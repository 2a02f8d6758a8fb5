import type { Clock, IdSource, MessageJSON } from '@skein/base'
import type { ContentBlock, UserContent } from '../contract/content.ts'
import { type ErrorOrigin, invalidRequest } from '../contract/error.ts'
import { asMessage } from '../contract/message-json.ts'
import { isMessage, type Message, UserMessage } from '../contract/message.ts'

/** One input of `generate` and `stream` (UPP §5.3). Messages may also be parsed JSON. */
export type InferenceInput = string | Message | MessageJSON | ContentBlock

/** A list of messages, or an object with `messages`, such as a thread. */
export type History =
  readonly (Message | MessageJSON)[] | { readonly messages: readonly (Message | MessageJSON)[] }

/** The sources of ids and times for new messages, and the provider that errors name. */
interface MessageSources {
  readonly ids: IdSource
  readonly clock: Clock
  readonly origin: ErrorOrigin
}

/** The messages of one call. */
export interface CallMessages {
  /** All messages to send. Other calls do not share the list. */
  readonly messages: Message[]
  /** The messages that are new in this call, and so belong to its turn. */
  readonly inputs: readonly Message[]
}

/**
 * Returns all messages of a call (the history, if the first argument is one, followed by the inputs) and,
 * separately, the inputs. The given history is neither stored nor changed.
 */
export function toMessages(
  given: readonly (History | InferenceInput)[],
  sources: MessageSources,
): CallMessages {
  const [first, ...rest] = given
  const past = historyOf(first)
  const history = past ? past.map((message) => toMessage(message, sources)) : []
  const inputs = toInputs((past ? rest : given) as readonly InferenceInput[], sources)
  const messages = [...history, ...inputs]
  if (messages.length === 0)
    throw invalidRequest('There is nothing to send.', sources.origin, 'Pass at least one input.')
  return { messages, inputs }
}

function historyOf(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value
  if (typeof value !== 'object' || value === null || isMessage(value)) return undefined
  return 'messages' in value && Array.isArray(value.messages) ? value.messages : undefined
}

/** Converts inputs to messages. Consecutive strings and blocks become one user message. */
function toInputs(inputs: readonly InferenceInput[], sources: MessageSources): Message[] {
  const messages: Message[] = []
  let blocks: UserContent[] = []
  const flush = (): void => {
    if (blocks.length > 0) messages.push(new UserMessage(blocks, sources))
    blocks = []
  }
  for (const input of inputs) {
    if (typeof input === 'string') blocks.push({ type: 'text', text: input })
    else if (isBlock(input)) blocks.push(input)
    else {
      flush()
      messages.push(toMessage(input, sources))
    }
  }
  flush()
  return messages
}

/**
 * True for an object with a `type` that is not a message.
 * `UserMessage` checks whether users may send the block.
 */
function isBlock(input: unknown): input is UserContent {
  return (
    typeof input === 'object' &&
    input !== null &&
    'type' in input &&
    typeof input.type === 'string' &&
    !isMessage(input)
  )
}

function toMessage(value: unknown, sources: MessageSources): Message {
  if (!isMessage(value))
    throw invalidRequest(
      `Expected a message but got ${describe(value)}.`,
      sources.origin,
      isRoleMessage(value)
        ? 'Use new UserMessage(…) or new AssistantMessage(…), or give the message a type instead of a role.'
        : 'The history is a list of messages; pass text and blocks after it, one argument each.',
    )
  return asMessage(value, sources)
}

function describe(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? typeof value
  if ('type' in value) return `an object of type ${JSON.stringify(value.type)}`
  return isRoleMessage(value)
    ? `an object with a role (${JSON.stringify(value.role)})`
    : 'an object'
}

/** True for a message as the SDKs of vendors have it: `{ role, content }`. */
function isRoleMessage(value: unknown): value is { readonly role: unknown } {
  return typeof value === 'object' && value !== null && 'role' in value && 'content' in value
}
