import {
  isPlainObject,
  systemClock,
  uuidV4,
  type Clock,
  type IdSource,
  type MessageJSON,
} from '@skein/base'
import { invalidValue } from './error.ts'
import { asMessage, dateOf, messageFromJSON, messageToJSON } from './message-json.ts'
import { isMessage, type Message } from './message.ts'
import type { Turn } from './turn.ts'

/** A thread as JSON. */
export interface ThreadJSON {
  readonly id: string
  readonly messages: readonly MessageJSON[]
  readonly createdAt: string
  readonly updatedAt: string
}

/** Options of a thread; all have defaults. */
export interface ThreadOptions {
  readonly id?: string
  readonly messages?: readonly Message[]
  readonly ids?: IdSource
  readonly clock?: Clock
}

/**
 * Stores a conversation (UPP §8). It is optional: `generate` and `stream` also accept a plain array of
 * messages.
 *
 *     const thread = new Thread()
 *     thread.append(await model.generate(thread, 'Hello!'))
 */
export class Thread implements Iterable<Message> {
  readonly id: string
  readonly #sources: { readonly ids: IdSource; readonly clock: Clock }
  readonly #messages: Message[]
  /**
   * The list that `messages` last returned; rebuilt only after a
   * change, so that adding a message stays cheap.
   */
  #view: readonly Message[] | undefined
  #createdAt: Date
  #updatedAt: Date

  constructor(options: ThreadOptions = {}) {
    if (Array.isArray(options))
      throw invalidValue('A thread was given a list.', 'Use new Thread({ messages }).')
    const { id, messages = [], ids = uuidV4, clock = systemClock } = options
    this.id = id ?? ids()
    this.#sources = { ids, clock }
    this.#messages = this.#checked(messages, 'Item')
    this.#createdAt = this.#updatedAt = new Date(clock.now())
  }

  /** The messages as a frozen list, which does not change when the thread does. */
  get messages(): readonly Message[] {
    return (this.#view ??= Object.freeze([...this.#messages]))
  }

  get length(): number {
    return this.#messages.length
  }

  get createdAt(): Date {
    return this.#createdAt
  }

  get updatedAt(): Date {
    return this.#updatedAt
  }

  append(turn: Turn): this {
    return this.#add(turn.messages)
  }

  push(...messages: readonly Message[]): this {
    return this.#add(messages)
  }

  clear(): this {
    this.#messages.length = 0
    return this.#changed()
  }

  [Symbol.iterator](): Iterator<Message> {
    return this.messages[Symbol.iterator]()
  }

  toJSON(): ThreadJSON {
    return {
      id: this.id,
      messages: this.#messages.map(messageToJSON),
      createdAt: this.#createdAt.toISOString(),
      updatedAt: this.#updatedAt.toISOString(),
    }
  }

  /** Reads a thread from untrusted JSON, given as an object or as text. */
  static fromJSON(json: unknown, options: Pick<ThreadOptions, 'clock'> = {}): Thread {
    const value: unknown = typeof json === 'string' ? parse(json) : json
    if (!isPlainObject(value)) throw invalidValue('Thread JSON is not an object.')
    const { id, messages, createdAt, updatedAt } = value
    if (typeof id !== 'string' || id === '') throw invalidValue('Thread JSON has no id.')
    if (!Array.isArray(messages)) throw invalidValue('Thread JSON has no list of messages.')
    const thread = new Thread({ ...options, id, messages: messages.map(messageFromJSON) })
    thread.#createdAt = dateOf(createdAt, 'Thread JSON: createdAt')
    thread.#updatedAt = dateOf(updatedAt, 'Thread JSON: updatedAt')
    return thread
  }

  #add(messages: readonly Message[]): this {
    for (const message of this.#checked(messages, 'Argument')) this.#messages.push(message)
    return this.#changed()
  }

  /** Returns the messages as instances, also those that are parsed JSON. */
  #checked(messages: readonly Message[], name: string): Message[] {
    return messages.map((message, index) => {
      if (isMessage(message)) return asMessage(message, this.#sources)
      throw invalidValue(`${name} ${index} is not a message of a thread.`)
    })
  }

  #changed(): this {
    this.#view = undefined
    this.#updatedAt = new Date(this.#sources.clock.now())
    return this
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw invalidValue('Thread JSON is not JSON.', undefined, cause)
  }
}
