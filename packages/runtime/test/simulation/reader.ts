import type { NumberedEvent } from '@skein/runtime'
import { foldThread, type FoldedThread, type UnknownThreadEvent } from '@skein/threads'
import type { Lane } from '../../src/testing/simulation.ts'
import type { Supervisor } from './supervisor.ts'
import type { World } from './world.ts'

/** Somebody who watches one thread, leaves and comes back, over every runtime. */
export class Reader {
  readonly received: NumberedEvent[] = []
  readonly #world: World
  readonly #supervisor: Supervisor
  readonly #lane: Lane
  #isOver = false
  #abort = new AbortController()

  constructor(world: World, supervisor: Supervisor) {
    this.#world = world
    this.#supervisor = supervisor
    this.#lane = world.time.scheduler.lane('reader')
  }

  async watch(threadId: string): Promise<void> {
    const { chance } = this.#world
    while (!this.#isOver) {
      const { runtime, died } = await this.#supervisor.up()
      const abort = new AbortController()
      this.#abort = abort
      void died.then(() => abort.abort())
      const after = this.received.at(-1)?.id
      const options = { signal: abort.signal, ...(after !== undefined && { after }) }
      for await (const event of runtime.subscribe(threadId, options)) {
        this.received.push(event)
        if (chance.happens(0.03)) break
      }
      if (!this.#isOver) await this.#lane.turn('reader')
    }
  }

  /** Takes the rest, and compares what came with what is in the log. */
  async finish(threadId: string): Promise<void> {
    this.#isOver = true
    this.#abort.abort()
    await this.#world.time.scheduler.quiet()
    const { runtime } = await this.#supervisor.up()
    const after = this.received.at(-1)?.id
    const options = { untilCaughtUp: true, ...(after !== undefined && { after }) }
    for await (const event of runtime.subscribe(threadId, options)) this.received.push(event)
    const log = (await this.#world.stored.store.events(threadId)).map(({ event }) => event)
    const got = this.received.map(({ event }) => event).filter((event) => !isTransient(event))
    const differing = difference(folded(got), folded(log))
    if (differing !== undefined)
      this.#world.violate(`Who watched ${threadId} does not have what its log says: ${differing}`)
    this.#tellWords()
  }

  /** Words that came in pieces, put together: a secret may be cut in two. */
  #tellWords(): void {
    const words = new Map<string, string>()
    for (const { event } of this.received) {
      const { blockId, toolCallId, text, argumentsText } = event as unknown as Partial<
        Record<string, string>
      >
      const key = blockId ?? toolCallId
      if (key !== undefined) words.set(key, (words.get(key) ?? '') + (text ?? argumentsText ?? ''))
    }
    for (const text of words.values()) this.#world.outputs.push({ where: 'a stream', text })
    this.#world.outputs.push({ where: 'live events', text: JSON.stringify(this.received) })
  }
}

function isTransient(event: NumberedEvent['event']): boolean {
  return event.type === 'custom_event' && event.isTransient === true
}

function folded(events: readonly NumberedEvent['event'][]): FoldedThread {
  return foldThread(events as unknown as UnknownThreadEvent[]) // later types are passed over
}

/** The first field that differs; fewer events may have said the same. */
function difference(got: FoldedThread, wanted: FoldedThread): string | undefined {
  for (const key of Object.keys(wanted) as (keyof FoldedThread)[]) {
    if (key === 'eventCount') continue
    const [one, other] = [toText(got[key]), toText(wanted[key])]
    if (one === other) continue
    const at = [...one].findIndex((letter, index) => letter !== other[index])
    const from = Math.max(at - 60, 0)
    return `${key}: …${one.slice(from, at + 80)} instead of …${other.slice(from, at + 80)}`
  }
  return undefined
}

function toText(value: unknown): string {
  return (
    JSON.stringify(value, (_key, member: unknown) =>
      member instanceof Map ? [...member] : member,
    ) ?? ''
  )
}
