import { invalidUse } from '../contract/agent-error.ts'

/** The longest file name in bytes that most file systems allow. */
const MAX_NAME = 255

/**
 * Returns the folder name of a session id. Letters, digits, `_`, `-` and inner dots are kept; everything else
 * is percent-encoded, so that no id leads out of the folder or into the folder of another session.
 */
export function toFolderName(sessionId: string): string {
  if (typeof sessionId !== 'string' || sessionId === '')
    throw invalidUse('A session id is a non-empty string.')
  let name: string
  try {
    name = encodeURIComponent(sessionId).replace(
      /[!~*'()]|^\.|\.$/g,
      (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
    )
  } catch {
    throw invalidUse(`The session id ${JSON.stringify(sessionId)} is not well-formed text.`)
  }
  if (name.length <= MAX_NAME) return name
  throw invalidUse(
    `The session id ${JSON.stringify(sessionId.slice(0, 40))}… is too long for a file name.`,
    `Encoded it has ${name.length} characters; at most ${MAX_NAME} are possible.`,
  )
}

/** Returns the session id of a folder, or undefined if the name was not made by `toFolderName`. */
export function fromFolderName(name: string): string | undefined {
  try {
    const sessionId = decodeURIComponent(name)
    return toFolderName(sessionId) === name ? sessionId : undefined
  } catch {
    return undefined // invalid percent-encoding
  }
}
