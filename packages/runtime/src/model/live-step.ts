import type { StreamEvent } from '@skein/ai'
import type { DrainContext } from '../context/drain-context.ts'
import { checksAnswers } from '../definitions/resolved.ts'
import type { ThreadEvent } from '@skein/threads'
import { OwnCallIds } from './own-call-ids.ts'

type Held = ReturnType<NonNullable<ReturnType<DrainContext['redactor']>>['stream']>

/** Sends the deltas of a step to subscribers. Deltas are not stored; only the complete answer is. */
export class LiveStep {
  readonly #context: DrainContext
  readonly #turnId: string
  readonly #callIds: OwnCallIds
  readonly #startedAt: number
  /** One redactor per block, which holds text back, because a secret may be split between two chunks. */
  readonly #held = new Map<
    string,
    { readonly held: Held; readonly show: (text: string) => ThreadEvent }
  >()
  #prefix: string
  /** What deltas say of the delivery of their answer. */
  readonly #mark: { readonly delivery?: 'pending' }
  firstTokenMs: number | undefined

  constructor(
    context: DrainContext,
    turnId: string,
    callIds: OwnCallIds = new OwnCallIds(context),
  ) {
    this.#context = context
    this.#turnId = turnId
    this.#callIds = callIds
    this.#startedAt = context.environment.clock.now()
    this.#prefix = context.state.session?.turn?.step?.id ?? turnId
    this.#mark = checksAnswers(context.agent) ? { delivery: 'pending' } : {}
  }

  get durationMs(): number {
    return this.#context.environment.clock.now() - this.#startedAt
  }

  push(batch: readonly StreamEvent[]): void {
    const events = batch.flatMap((event) => this.#toEvents(event))
    if (events.length > 0) this.#context.environment.show(this.#context.head.id, events)
  }

  /** Sends the text that the redactors held back. Not called after a failure: that text may be a part of a secret. */
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
    const mark = this.#mark
    if (type === 'text_delta' || type === 'reasoning_delta')
      return this.#safe(`${type}${index}`, delta.text ?? '', (text) => ({
        type,
        at,
        turnId,
        blockId,
        text,
        ...mark,
      }))
    if (type !== 'tool_call_delta') return []
    const { toolName = '', argumentsJson = '' } = delta
    const toolCallId = this.#callIds.of(delta.toolCallId ?? '')
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
    const stream = this.#held.get(key)?.held ?? redactor.stream()
    this.#held.set(key, { held: stream, show })
    const safe = stream.push(text)
    return safe === '' ? [] : [show(safe)]
  }
}
