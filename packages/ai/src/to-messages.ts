import type { Clock, IdSource } from '@skein/base'
import type { ContentBlock, UserContent } from './content.ts'
import { messageFromJSON, type MessageJSON } from './message-json.ts'
import { isMessage, UserMessage, type Message } from './message.ts'
import { invalidRequest, type ErrorOrigin } from './to-upp-error.ts'

/** What `generate` and `stream` take (UPP §5.3). Messages may also be parsed JSON. */
export type InferenceInput = string | Message | MessageJSON | ContentBlock

/** A list of messages, or a thread: anything with `messages`. */
export type History =
  readonly (Message | MessageJSON)[] | { readonly messages: readonly (Message | MessageJSON)[] }

/** Where new messages get their ids and times, and whom errors name. */
export interface MessageSources {
  readonly ids: IdSource
  readonly clock: Clock
  readonly origin: ErrorOrigin
}

/** What one call sends. */
export interface CallMessages {
  /** Everything to send. A list of this call's own. */
  readonly messages: Message[]
  /** The part that is new with this call, and so part of its turn. */
  readonly inputs: readonly Message[]
}

/** Sorts the arguments of a call into history and inputs. The history is neither kept nor changed. */
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

/** Strings and blocks in a row are one user message, as they would be in a chat. */
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

/** Which blocks a user may send is the message constructor's to say. */
function isBlock(input: unknown): input is UserContent {
  return (
    typeof input === 'object' &&
    input !== null &&
    'type' in input &&
    typeof input.type === 'string' &&
    !isMessage(input)
  )
}

function toMessage(value: unknown, { ids, clock, origin }: MessageSources): Message {
  if (!isMessage(value))
    throw invalidRequest(
      `Expected a message but got ${describe(value)}.`,
      origin,
      'The history is a list of messages; pass text and blocks after it, one argument each.',
    )
  if ('text' in value) return value // an instance, of this or another copy of the package
  // Parsed JSON: accessors, bytes and dates come back, and what JSON left out gets its default.
  const { id = ids(), timestamp = new Date(clock.now()), ...rest } = value as Partial<Message>
  const iso = timestamp instanceof Date ? timestamp.toISOString() : timestamp
  return messageFromJSON({ ...rest, id, timestamp: iso })
}

function describe(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? typeof value
  return 'type' in value ? `an object of type ${JSON.stringify(value.type)}` : 'an object'
}
