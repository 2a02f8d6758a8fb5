import { SkeinError, uuidV7 } from '@skein/base'
import { messageFromJSON, type Message } from '@skein/ai'
import type { SendMessage } from '../runtime-api.ts'
import { HttpError } from './http-error.ts'
import type { Principal } from './principal.ts'

/** A message as a client sent it, with its blocks checked and its author from who the client is. */
export function toSendMessage(message: unknown, { user }: Principal): SendMessage {
  const author = user === undefined ? {} : { userId: user }
  if (typeof message === 'string') return { text: message, ...author }
  const { content, ...rest } = message as SendMessage // checked by the schema
  if (content === undefined && (rest.text ?? '') === '' && !rest.attachments?.length)
    throw invalid('The message is empty.', 'body')
  if (content === undefined) return { ...rest, ...author }
  const checked = parseMessage({ type: 'user', content }, 'body.content')
  if (checked.type !== 'user') throw invalid('The message is not one of a user.', 'body.content')
  return { ...rest, content: checked.content, ...author }
}

/** A message from JSON; id and time may be missing. */
export function parseMessage(json: object, field: string): Message {
  try {
    return messageFromJSON({ id: uuidV7(), timestamp: new Date().toISOString(), ...json })
  } catch (error) {
    if (!SkeinError.is(error) && !(error instanceof TypeError)) throw error
    throw invalid(error.message, field)
  }
}

function invalid(message: string, field: string): HttpError {
  return new HttpError(message, { code: 'INPUT_INVALID', problems: [{ field, message }] })
}
