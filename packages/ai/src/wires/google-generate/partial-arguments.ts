import type { PartialArgument } from './types.ts'

type Segment = string | number

/** An object or list that is being written. */
interface Container {
  readonly isList: boolean
  /** The key or index in its parent. */
  readonly at: Segment
  readonly written: Set<Segment>
}

/**
 * Writes streamed arguments as JSON text, piece by piece. The vendor names the JSON path of each
 * value, in the order in which the model writes them. A path into an object or list that is already
 * closed can no longer be written and throws.
 */
export class PartialArguments {
  readonly #open: Container[] = []
  #openString: string | undefined
  #isStarted = false

  write(argument: PartialArgument): string {
    const path = String(argument.jsonPath ?? '')
    const text = this.#isStarted ? '' : this.#start()
    if (typeof argument.stringValue === 'string' && path === this.#openString) {
      return text + inner(argument.stringValue) + this.#endString(argument)
    }
    return text + this.#closeString() + this.#value(parsePath(path), argument, path)
  }

  /** Returns the closing text; `{}` if nothing was written. */
  end(): string {
    const text = this.#isStarted ? this.#closeString() : this.#start()
    return text + this.#closeTo(0)
  }

  #start(): string {
    this.#isStarted = true
    this.#open.push({ isList: false, at: '$', written: new Set() })
    return '{'
  }

  #value(segments: readonly Segment[], argument: PartialArgument, path: string): string {
    const last = segments.length - 1
    let depth = 0
    while (depth < last && this.#open[depth + 1]?.at === segments[depth]) depth++
    let text = this.#closeTo(depth + 1)
    for (; depth < last; depth++) {
      const isList = typeof segments[depth + 1] === 'number'
      text += this.#place(segments[depth]!) + (isList ? '[' : '{')
      this.#open.push({ isList, at: segments[depth]!, written: new Set() })
    }
    text += this.#place(segments[last]!)
    const { stringValue, numberValue, boolValue } = argument
    if (typeof stringValue !== 'string') {
      if (typeof numberValue === 'number') return text + JSON.stringify(numberValue)
      return text + (typeof boolValue === 'boolean' ? String(boolValue) : 'null')
    }
    this.#openString = path
    return `${text}"${inner(stringValue)}${this.#endString(argument)}`
  }

  /** Returns the comma and the name before a value of the innermost container. */
  #place(at: Segment): string {
    const { isList, written } = this.#open.at(-1)!
    const fits = isList ? at === written.size : typeof at === 'string' && !written.has(at)
    if (!fits) throw new Error(`the path of streamed arguments goes back to ${JSON.stringify(at)}`)
    const comma = written.size > 0 ? ',' : ''
    written.add(at)
    return isList ? comma : `${comma}${JSON.stringify(at)}:`
  }

  #endString({ willContinue }: PartialArgument): string {
    return willContinue === true ? '' : this.#closeString()
  }

  #closeString(): string {
    if (this.#openString === undefined) return ''
    this.#openString = undefined
    return '"'
  }

  #closeTo(depth: number): string {
    let text = ''
    while (this.#open.length > depth) text += this.#open.pop()!.isList ? ']' : '}'
    return text
  }
}

/**
 * Returns the text of a JSON string without its quotes. Halves of a surrogate pair are written as
 * escapes.
 */
function inner(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

/** Parses a JSON path such as `$.a.b[0]['c']` (RFC 9535, without queries). */
function parsePath(path: string): Segment[] {
  const segments: Segment[] = []
  const step = /\.([^.[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/y
  step.lastIndex = 1
  while (path.startsWith('$') && step.lastIndex < path.length) {
    const match = step.exec(path)
    if (!match) break
    const [, name, index, single, double] = match
    if (index !== undefined) segments.push(Number(index))
    else segments.push(name ?? (single ?? double)!.replace(/\\(.)/g, '$1'))
    if (step.lastIndex === path.length) return segments
  }
  throw new Error(`streamed arguments have the path ${JSON.stringify(path)}`)
}
