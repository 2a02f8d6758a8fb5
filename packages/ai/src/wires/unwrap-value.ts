/**
 * Takes the wrapper `{"value": … }` off a streamed answer (see `toDialect`), so that everything
 * above sees the JSON that was asked for. Text that does not start like the wrapper is passed on
 * as it is; text that was cut off before the wrapper closed keeps all that came.
 */
export class ValueUnwrapper {
  #state: 'opening' | 'inside' | 'plain' = 'opening'
  #held = ''

  push(text: string): string {
    if (this.#state === 'plain') return text
    this.#held += text
    if (this.#state === 'opening') return this.#open()
    return this.#release()
  }

  /** The rest, without the closing brace. */
  end(): string {
    const rest = this.#held
    this.#held = ''
    if (this.#state !== 'inside') return rest
    const tail = closingTail(rest)
    return rest.includes('}', tail) ? rest.slice(0, tail) : rest
  }

  #open(): string {
    const opening = /^\s*\{\s*"value"\s*:\s*/.exec(this.#held)
    if (opening) {
      // A value may still be missing its first character; the space before it is not part of it.
      if (opening[0].length === this.#held.length) return ''
      this.#held = this.#held.slice(opening[0].length)
      this.#state = 'inside'
      return this.#release()
    }
    const canStillOpen = '{"value":'.startsWith(this.#held.replace(/\s+/g, ''))
    if (canStillOpen) return ''
    this.#state = 'plain'
    const text = this.#held
    this.#held = ''
    return text
  }

  /** Gives out all but a tail that may turn out to be the wrapper's closing brace. */
  #release(): string {
    const tail = closingTail(this.#held)
    const text = this.#held.slice(0, tail)
    this.#held = this.#held.slice(tail)
    return text
  }
}

/** Where a trailing `}` with the white space around it starts. By hand: a regular expression would be quadratic. */
function closingTail(text: string): number {
  let end = skipSpaceBack(text, text.length)
  if (text[end - 1] === '}') end = skipSpaceBack(text, end - 1)
  return end
}

function skipSpaceBack(text: string, end: number): number {
  while (end > 0 && text.charCodeAt(end - 1) <= 32) end--
  return end
}
