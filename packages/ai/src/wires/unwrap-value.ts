/** More than this before the wrapper opens, and it is none: models do flood answers with spaces. */
const MAX_OPENING = 1000

/**
 * Takes the wrapper `{"value": … }` off a streamed answer (see `toDialect`), so that everything
 * above sees the JSON that was asked for. Text that does not start like the wrapper is passed on
 * as it is; text that was cut off before the wrapper closed keeps what came. Linear.
 */
export class ValueUnwrapper {
  #state: 'opening' | 'inside' | 'plain' = 'opening'
  /** Before the value: all text so far. Inside: a brace that may be the wrapper's, and spaces. */
  #held = ''

  push(text: string): string {
    if (this.#state === 'plain') return text
    return this.#state === 'opening' ? this.#open(text) : this.#pass(text)
  }

  /** The rest, without the closing brace. */
  end(): string {
    const rest = this.#state === 'inside' ? '' : this.#held
    this.#held = ''
    return rest
  }

  #open(text: string): string {
    const start = this.#held + text
    this.#held = ''
    const opening = /^\s*\{\s*"value"\s*:\s*/.exec(start)?.[0]
    if (opening !== undefined && opening.length < start.length) {
      this.#state = 'inside'
      return this.#pass(start.slice(opening.length))
    }
    const canOpen = opening !== undefined || '{"value":'.startsWith(start.replace(/\s+/g, ''))
    if (canOpen && start.length <= MAX_OPENING) {
      this.#held = start
      return ''
    }
    this.#state = 'plain'
    return start
  }

  /** Gives out all but a closing brace with nothing but spaces behind it. */
  #pass(text: string): string {
    if (this.#held !== '' && !/\S/.test(text)) {
      this.#held += text
      return ''
    }
    const whole = this.#held + text
    let end = whole.length
    while (end > 0 && whole.charCodeAt(end - 1) <= 32) end--
    const cut = whole[end - 1] === '}' ? end - 1 : whole.length
    this.#held = whole.slice(cut)
    return whole.slice(0, cut)
  }
}
