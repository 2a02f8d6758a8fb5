import { invalidRequest } from '../agent-error.ts'

/** Most file systems take names of 255 bytes. */
const MAX_NAME = 255

/**
 * A folder name for a session id. Letters, digits, `_`, `-` and inner dots stand as they are; all
 * else is percent-encoded, so that no id leads out of the folder or into that of another session.
 */
export function toFolderName(sessionId: string): string {
  if (typeof sessionId !== 'string' || sessionId === '')
    throw invalidRequest('A session id is a non-empty string.')
  const name = encoded(sessionId)
  if (name.length <= MAX_NAME) return name
  throw invalidRequest(
    `The session id ${JSON.stringify(sessionId.slice(0, 40))}… is too long for a file name.`,
    `Encoded it has ${name.length} characters; at most ${MAX_NAME} will do.`,
  )
}

/** The session id of a folder, undefined if it is not one of ours. */
export function fromFolderName(name: string): string | undefined {
  try {
    const sessionId = decodeURIComponent(name)
    return toFolderName(sessionId) === name ? sessionId : undefined
  } catch {
    return undefined // not percent-encoding at all
  }
}

function encoded(sessionId: string): string {
  try {
    return encodeURIComponent(sessionId).replace(/[!~*'()]|^\.|\.$/g, percent)
  } catch {
    throw invalidRequest(`The session id ${JSON.stringify(sessionId)} is not well-formed text.`)
  }
}

function percent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}
