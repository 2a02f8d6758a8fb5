import type { ValueUnwrapper } from './wire.ts'

/**
 * If the wrapper has not started after this many characters, the answer is not wrapped. The limit is
 * needed because models sometimes produce endless spaces.
 */
const MAX_OPENING = 1000

/**
 * Removes the wrapper `{"value": … }` from a streamed answer (see `toDialect`), so that callers
 * receive the JSON they asked for. Text that does not start with the wrapper is passed on unchanged;
 * if the text is cut off before the wrapper closes, everything received is kept. The cost is linear.
 */
export function unwrapValue(): ValueUnwrapper {
  let state: 'opening' | 'inside' | 'plain' = 'opening'
  // Text not yet returned: while `opening` all text so far, while `inside` a brace that may close the
  // wrapper, and spaces after it.
  let buffer = ''
  let isNumber = false
  const open = (text: string): string => {
    const start = buffer + text
    buffer = ''
    const opening = /^\s*\{\s*"value"\s*:\s*/.exec(start)?.[0]
    if (opening !== undefined && opening.length < start.length) {
      state = 'inside'
      isNumber = /^[-\d]/.test(start.slice(opening.length))
      return pass(start.slice(opening.length))
    }
    const canOpen = opening !== undefined || '{"value":'.startsWith(start.replace(/\s+/g, ''))
    if (canOpen && start.length <= MAX_OPENING) {
      buffer = start
      return ''
    }
    state = 'plain'
    return start
  }
  /** Returns all text except a final closing brace, which may be the wrapper's, and spaces after it. */
  const pass = (text: string): string => {
    if (buffer !== '' && !/\S/.test(text)) {
      buffer += text
      return ''
    }
    const whole = buffer + text
    let end = whole.length
    while (end > 0 && whole.charCodeAt(end - 1) <= 32) end--
    const cutAt = whole[end - 1] === '}' ? end - 1 : whole.length
    buffer = whole.slice(cutAt)
    return whole.slice(0, cutAt)
  }
  return {
    push: (text) => (state === 'plain' ? text : state === 'opening' ? open(text) : pass(text)),
    end: () => {
      // A space says that a number is whole, because the wrapper was closed after it. Without it, a number at the
      // end of an answer that a limit cut off may have lost digits.
      const rest = state !== 'inside' ? buffer : isNumber && buffer.startsWith('}') ? ' ' : ''
      buffer = ''
      return rest
    },
  }
}
