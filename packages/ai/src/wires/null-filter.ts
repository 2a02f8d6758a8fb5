import { isPlainObject, type JsonSchema } from '@skein/base'
import { resolveRef } from '../contract/structure.ts'
import type { StreamEvent } from '../contract/event.ts'
import type { BoundLLMModel } from '../contract/provider.ts'
import { allowsNull, itemSchemas, requiredNames, withoutNullsAt } from './strict-nulls.ts'

/**
 * Removes the nulls that stand for optional properties from the text of a structured answer, while the text
 * arrives: what `withoutNulls` does to data, for readers of the text (SEAMS 6). The rest of the text stays as the
 * vendor wrote it and is passed on immediately; only the name of a property waits for the first character of its value.
 * An object that may follow several schemas waits for its end, because only its whole content says which. Text that
 * is not JSON is passed on unchanged.
 */
export class NullFilter {
  readonly #root: JsonSchema
  readonly #frames: Frame[] = []
  #mode: Mode = 'value'
  /** The comma and the name of a member whose value has not begun. */
  #held: { comma: boolean; text: string; name: string } | undefined
  #scalar = ''
  #isEscaped = false
  /** An object with several possible schemas, and the number of frames around it. */
  #waiting: { text: string; readonly depth: number; readonly schema: unknown } | undefined
  #out = ''

  constructor(root: JsonSchema) {
    this.#root = root
  }

  push(text: string): string {
    let index = 0
    while (index < text.length) index = this.#mode === 'raw' ? this.#pass(text, index) : this.#read(text, index) // prettier-ignore
    return this.#take()
  }

  /** Returns the text that was still held back, e.g. of an answer that was cut off. */
  end(): string {
    if (this.#mode === 'scalar') this.#endScalar()
    this.#giveUp()
    return this.#take()
  }

  #take(): string {
    const out = this.#out
    this.#out = ''
    return out
  }

  #pass(text: string, start: number): number {
    this.#write(text.slice(start))
    return text.length
  }

  #read(text: string, start: number): number {
    const char = text[start]!
    switch (this.#mode) {
      case 'string':
      case 'name':
        return this.#readString(text, start)
      case 'scalar':
        if (!/[\s,\]}]/.test(char)) {
          this.#scalar += char
          return start + 1
        }
        this.#endScalar()
        return start
      default:
        this.#structure(char)
        // What is malformed is read again, as text that is passed on.
        return this.#mode === 'raw' ? start : start + 1
    }
  }

  #readString(text: string, start: number): number {
    let index = start
    let isClosed = false
    for (; index < text.length && !isClosed; index++) {
      const char = text[index]
      if (this.#isEscaped) this.#isEscaped = false
      else if (char === '\\') this.#isEscaped = true
      else if (char === '"') isClosed = true
    }
    const piece = text.slice(start, index)
    if (this.#mode === 'string') this.#write(piece)
    else this.#held!.text += piece
    if (!isClosed) return index
    if (this.#mode === 'name') this.#endName()
    else this.#mode = 'after'
    return index
  }

  /** Reads one character between values. */
  #structure(char: string): void {
    if (/\s/.test(char)) {
      if (this.#held) this.#held.text += char
      else this.#write(char)
      return
    }
    const frame = this.#frames.at(-1)
    const mode = this.#mode
    if (mode === 'colon' && char === ':') {
      this.#held!.text += char
      this.#mode = 'value'
    } else if (mode === 'after' && char === ',' && frame) {
      if (frame.isObject) {
        this.#held = { comma: true, text: '', name: '' }
        this.#mode = 'member'
      } else {
        frame.index++
        this.#write(char)
        this.#mode = 'value'
      }
    } else if (mode === 'member' && char === '"') {
      this.#held ??= { comma: false, text: '', name: '' }
      this.#held.text += char
      this.#mode = 'name'
    } else if ((char === '}' || char === ']') && frame && this.#mayClose(frame, char))
      this.#close(char) // prettier-ignore
    else if (mode === 'value' || mode === 'first') this.#begin(char)
    else this.#giveUp()
  }

  #mayClose(frame: Frame, char: string): boolean {
    if (frame.isObject !== (char === '}')) return false
    return this.#mode === 'after' || (frame.isObject ? this.#mode === 'member' && !this.#held : this.#mode === 'first') // prettier-ignore
  }

  /** Reads the first character of a value. */
  #begin(char: string): void {
    if (char !== '{' && char !== '[') {
      if (char === '"') {
        this.#flush()
        this.#write(char)
        this.#mode = 'string'
      } else {
        this.#scalar = char
        this.#mode = 'scalar'
      }
      return
    }
    const schema = this.#schemaOfValue()
    this.#flush()
    const isObject = char === '{'
    let own = this.#waiting ? undefined : this.#resolve(schema, isObject ? 'object' : 'array', 0)
    if (own === 'several') {
      this.#waiting = { text: '', depth: this.#frames.length, schema }
      own = undefined
    }
    this.#write(char)
    this.#frames.push({ isObject, schema: own, index: 0, count: 0 })
    this.#mode = isObject ? 'member' : 'first'
  }

  #close(char: string): void {
    this.#write(char)
    this.#frames.pop()
    this.#mode = this.#frames.length > 0 ? 'after' : 'end'
    const waiting = this.#waiting
    if (waiting?.depth !== this.#frames.length) return
    this.#waiting = undefined
    this.#write(this.#restored(waiting.text, waiting.schema))
  }

  #restored(text: string, schema: unknown): string {
    try {
      const data: unknown = JSON.parse(text)
      const result = withoutNullsAt(this.#root, schema, data)
      const newText = JSON.stringify(result)
      return newText === JSON.stringify(data) ? text : newText
    } catch {
      return text // a literal that is not JSON: the reader of the text will say so
    }
  }

  #endName(): void {
    const { text } = this.#held!
    try {
      this.#held!.name = JSON.parse(text) as string // a string, because it began with a quote
      this.#mode = 'colon'
    } catch {
      this.#giveUp()
    }
  }

  #endScalar(): void {
    const scalar = this.#scalar
    this.#scalar = ''
    this.#mode = this.#frames.length > 0 ? 'after' : 'end'
    if (scalar === 'null' && this.#isInvented()) this.#held = undefined
    else {
      this.#flush()
      this.#write(scalar)
    }
  }

  /** Checks whether the member whose value is null is an optional property that is absent. */
  #isInvented(): boolean {
    const schema = this.#frames.at(-1)?.schema
    if (!schema || !this.#held) return false
    const { name } = this.#held
    const { properties } = schema
    if (!isPlainObject(properties) || !Object.hasOwn(properties, name)) return false
    return !requiredNames(schema).has(name) && !allowsNull(properties[name], this.#root)
  }

  /** Writes the name of the member whose value begins. The first member that is written has no comma. */
  #flush(): void {
    const frame = this.#frames.at(-1)
    const held = this.#held
    if (!held) return
    this.#held = undefined
    this.#write((held.comma && frame && frame.count > 0 ? ',' : '') + held.text)
    if (frame) frame.count++
  }

  #write(text: string): void {
    if (this.#waiting) this.#waiting.text += text
    else this.#out += text
  }

  #giveUp(): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting) this.#write(waiting.text)
    this.#flush()
    this.#write(this.#scalar)
    this.#scalar = ''
    this.#mode = 'raw'
  }

  #schemaOfValue(): unknown {
    const frame = this.#frames.at(-1)
    if (!frame) return this.#root
    const { schema, isObject, index } = frame
    if (!schema) return undefined
    if (isObject) {
      const { properties, additionalProperties } = schema
      const name = this.#held?.name ?? ''
      return isPlainObject(properties) && Object.hasOwn(properties, name)
        ? properties[name]
        : additionalProperties
    }
    const { prefix, rest } = itemSchemas(schema)
    return index < prefix.length ? prefix[index] : rest
  }

  /** Returns the one schema of a value; `several` if its content decides; undefined if any value is right. */
  #resolve(
    schema: unknown,
    kind: 'object' | 'array',
    depth: number,
  ): JsonSchema | 'several' | undefined {
    if (!isPlainObject(schema) || depth > MAX_DEPTH) return undefined
    const { $ref, anyOf, oneOf, allOf } = schema
    const branches = anyOf ?? oneOf
    const isPlain = ['properties', 'items', 'prefixItems', 'allOf'].every((name) => !(name in schema)) // prettier-ignore
    if (allOf !== undefined) return 'several'
    if ($ref !== undefined)
      return isPlain && branches === undefined
        ? this.#resolve(resolveRef(this.#root, $ref), kind, depth + 1)
        : 'several'
    if (!Array.isArray(branches)) return schema
    if (!isPlain) return 'several'
    const fitting = branches
      .map((branch) => this.#resolve(branch, kind, depth + 1))
      .filter((branch) => branch === 'several' || (branch && mayBe(branch, kind)))
    return fitting.length > 1 ? 'several' : fitting[0]
  }
}

type Mode = 'value' | 'first' | 'member' | 'name' | 'colon' | 'string' | 'scalar' | 'after' | 'end' | 'raw' // prettier-ignore

/** An object or a list that has not ended. */
interface Frame {
  readonly isObject: boolean
  /** Its schema; undefined if any value is right. */
  readonly schema: JsonSchema | undefined
  /** The position in a list. */
  index: number
  /** The members written so far. */
  count: number
}

const MAX_DEPTH = 100

function mayBe({ type }: JsonSchema, kind: string): boolean {
  return type === undefined || [type].flat().includes(kind)
}

/**
 * Passes events on with the text of a structured answer as its schema describes it. For clients that get the text
 * and not the data: those of the gateway and of the AI SDK.
 */
export async function* withoutInventedNulls(
  batches: AsyncIterable<readonly StreamEvent[]>,
  structure: JsonSchema | undefined,
  { readData }: Pick<BoundLLMModel, 'readData'>,
): AsyncGenerator<readonly StreamEvent[], void> {
  if (!structure || !readData) {
    yield* batches
    return
  }
  const filters = new Map<number, NullFilter>()
  for await (const batch of batches)
    yield batch.flatMap((event): StreamEvent[] => {
      const { index } = event
      if (event.type === 'message_start') filters.clear()
      if (event.type === 'object_delta' || event.type === 'text_delta') {
        const filter = filters.get(index) ?? new NullFilter(structure)
        filters.set(index, filter)
        const text = filter.push(event.delta.text)
        return text === '' ? [] : [{ ...event, delta: { text } }]
      }
      if (event.type !== 'content_block_stop') return [event]
      const rest = filters.get(index)?.end() ?? ''
      return rest === '' ? [event] : [{ type: 'object_delta', index, delta: { text: rest } }, event]
    })
}
