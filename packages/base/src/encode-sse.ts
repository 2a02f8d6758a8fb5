import { SkeinError } from './error.ts'

/** The fields of an event to send. */
export interface SseFields {
  readonly event?: string | undefined
  readonly data: string
  readonly id?: string | undefined
  readonly retry?: number | undefined
}

/** Writes one server-sent event, with its closing blank line. Data may have several lines. */
export function encodeSse({ event, data, id, retry }: SseFields): string {
  let text = ''
  if (event !== undefined) text += `event: ${oneLine('event', event)}\n`
  if (id !== undefined) text += `id: ${oneLine('id', id)}\n`
  if (retry !== undefined) {
    if (!Number.isSafeInteger(retry) || retry < 0) {
      throw new SkeinError(
        `The retry of a server-sent event is ${retry}, not whole milliseconds.`,
        {
          code: 'SSE_INVALID_FIELD',
          hint: 'Give a whole number of milliseconds, 0 or more.',
        },
      )
    }
    text += `retry: ${retry}\n`
  }
  const lines = /[\r\n]/.test(data) ? data.replace(/\r\n?|\n/g, '\ndata: ') : data
  return `${text}data: ${lines}\n\n`
}

/**
 * Rejects line breaks and NUL: a line break would let a value add further fields, and receivers ignore an id
 * with NUL.
 */
function oneLine(field: string, value: string): string {
  if (!/[\r\n\0]/.test(value)) return value
  throw new SkeinError(`The ${field} of a server-sent event contains a line break or NUL.`, {
    code: 'SSE_INVALID_FIELD',
    hint: `Send it in the data instead, or remove those characters from the ${field}.`,
  })
}
