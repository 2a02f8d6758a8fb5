import { type Message, messageToJSON } from '@skein/ai'
import { fileIn, shownAs } from './file-blocks.ts'
import { mediaItems } from './media-in-messages.ts'

/** The estimated tokens of an image, audio, video or document, whatever its size. */
const MEDIA_TOKENS = 1000

/**
 * The largest length, in characters, of a tool result in a request for a summary. Longer results are
 * cut, because the messages after a result say what mattered in it.
 */
const MAX_RESULT_LENGTH = 4000

const estimates = new WeakMap<Message, number>()

/** Estimates the tokens of messages, at four characters per token. The number is cached per message. */
export function estimateViewTokens(messages: readonly Message[]): number {
  let tokens = 0
  for (const message of messages) {
    let own = estimates.get(message)
    if (own === undefined) {
      const media = mediaOf(message).length + filesIn(message)
      // Media count as `MEDIA_TOKENS` each, whatever the number of their bytes; the text next to them
      // counts by its length.
      const lines = media === 0 ? 0 : toLines(message).length / 4
      own = media === 0 ? lengthOf(message) / 4 : media * MEDIA_TOKENS + lines
      estimates.set(message, own)
    }
    tokens += own
  }
  return Math.ceil(tokens)
}

function lengthOf(message: Message): number {
  try {
    return JSON.stringify(messageToJSON(message)).length
  } catch {
    return 0 // JSON has no such value, e.g. a bigint; storing the message reports it
  }
}

/** Converts a message to lines of text for the summary. */
export function toLines(message: Message): string {
  if (message.type === 'tool_result') {
    return message.results
      .map(({ toolName, isError, result }) => {
        const kind = isError ? 'error' : 'result'
        return `[${kind}${toolName === undefined ? '' : ` of ${toolName}`}] ${resultText(result)}`
      })
      .join('\n')
  }
  const media = mediaOf(message).map(({ type, mimeType }) => `(${type}, ${mimeType})`)
  const lines = [message.text, ...media].filter((line) => line !== '')
  const calls = message.type === 'assistant' ? (message.toolCalls ?? []) : []
  for (const { toolName, arguments: args } of calls) {
    lines.push(`(calls ${toolName} with ${resultText(args)})`)
  }
  return `[${message.type}] ${lines.join('\n')}`
}

/** Counts the files to which a message refers and whose content a model may be shown. */
function filesIn(message: Message): number {
  return mediaItems(message).filter((item) => shownAs(fileIn(item)?.mediaType ?? '')).length
}

function mediaOf({ images, audio, video, documents }: Message) {
  return [...images, ...audio, ...video, ...documents]
}

function resultText(result: unknown): string {
  const text = typeof result === 'string' ? result : (JSON.stringify(result, withoutBytes) ?? '')
  if (text.length <= MAX_RESULT_LENGTH) return text
  return `${text.slice(0, MAX_RESULT_LENGTH)}… (${text.length - MAX_RESULT_LENGTH} characters more)`
}

/** Replaces media by their type, for `JSON.stringify`. */
function withoutBytes(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Uint8Array) return `(${value.length} bytes)`
  const { type, mimeType } = value as { type?: unknown; mimeType?: unknown }
  const isMedia = typeof type === 'string' && typeof mimeType === 'string'
  return isMedia && ('data' in value || 'source' in value) ? `(${type}, ${mimeType})` : value
}
