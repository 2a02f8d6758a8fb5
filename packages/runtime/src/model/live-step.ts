import type { StreamEvent } from '@skein/ai'
import type { ThreadEvent } from '@skein/threads'
import type { DrainContext } from '../context.ts'

type Held = ReturnType<NonNullable<ReturnType<DrainContext['redactor']>>['stream']>

/** Shows a step while it happens. Nothing of it is stored: the answer is, when it is whole. */
export class LiveStep {
  readonly #context: DrainContext
  readonly #turnId: string
  readonly #startedAt: number
  /** One redactor per block: a secret may be cut in two by a chunk. */
  readonly #held = new Map<
    string,
    { readonly held: Held; readonly show: (text: string) => ThreadEvent }
  >()
  #prefix: string
  firstTokenMs: number | undefined

  constructor(context: DrainContext, turnId: string) {
    this.#context = context
    this.#turnId = turnId
    this.#startedAt = context.environment.clock.now()
    this.#prefix = context.state.session?.turn?.step?.id ?? turnId
  }

  get durationMs(): number {
    return this.#context.environment.clock.now() - this.#startedAt
  }

  push(batch: readonly StreamEvent[]): void {
    const events = batch.flatMap((event) => this.#toEvents(event))
    if (events.length > 0) this.#context.environment.show(this.#context.head.id, events)
  }

  /** Gives what the redactors held back. */
  end(): void {
    const events: ThreadEvent[] = []
    for (const { held, show } of this.#held.values()) {
      const text = held.end()
      if (text !== '') events.push(show(text))
    }
    this.#held.clear()
    if (events.length > 0) this.#context.environment.show(this.#context.head.id, events)
  }

  #toEvents({ type, index, delta }: StreamEvent): ThreadEvent[] {
    const at = this.#context.at()
    const turnId = this.#turnId
    const blockId = `${this.#prefix}/${index}`
    if (type === 'text_delta' || type === 'reasoning_delta')
      return this.#safe(`${type}${index}`, delta.text ?? '', (text) => ({
        type,
        at,
        turnId,
        blockId,
        text,
      }))
    if (type !== 'tool_call_delta') return []
    const { toolCallId = '', toolName = '', argumentsJson = '' } = delta
    return this.#safe(toolCallId, argumentsJson, (argumentsText) => ({
      type: 'tool_call_delta',
      at,
      turnId,
      toolCallId,
      toolName,
      argumentsText,
    }))
  }

  #safe(key: string, text: string, show: (text: string) => ThreadEvent): ThreadEvent[] {
    this.firstTokenMs ??= this.durationMs
    const redactor = this.#context.redactor()
    if (!redactor) return [show(text)]
    const known = this.#held.get(key)?.held ?? redactor.stream()
    this.#held.set(key, { held: known, show })
    const safe = known.push(text)
    return safe === '' ? [] : [show(safe)]
  }
}
