import fc from 'fast-check'
import { expect, test } from 'vitest'
import { manualClock } from '@skein/base'
import { foldThread, type FoldedThread, type UnknownThreadEvent } from '@skein/threads'
import type { RuntimeEvent } from '../../src/contract/event.ts'
import { createLiveBus, type LiveBus } from '../../src/live/live-bus.ts'
import { endsDraft, type ShownEvent } from '../../src/live/live-draft.ts'
import type { NumberedEvent } from '../../src/contract/subscription.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import type { Store } from '../../src/store/store.ts'

const threadId = 't1'
const at = '2026-01-01T00:00:00.000Z'
const timeout = 120_000
const numRuns = process.env['SKEIN_DEEP'] ? 5000 : 200

/** What a drain, its model, its tools and other people do, in an order that can happen. */
type Op =
  | {
      readonly type: 'durable'
      readonly event: RuntimeEvent
      /** Told after somebody else's later commit. */
      readonly isLate?: boolean
      /** Not of the drain. */
      readonly isMail?: boolean
    }
  | { readonly type: 'show'; readonly events: readonly ShownEvent[] }

type ReaderOp = { readonly take: number } | 'leave'

const text = fc.string({ maxLength: 5 })

const speech = (turnId: string) =>
  fc.oneof(
    fc.record({
      type: fc.constant('text_delta' as const),
      at: fc.constant(at),
      turnId: fc.constant(turnId),
      blockId: fc.constantFrom('b1', 'b2'),
      text,
    }),
    fc.record({
      type: fc.constant('reasoning_delta' as const),
      at: fc.constant(at),
      turnId: fc.constant(turnId),
      blockId: fc.constantFrom('b1', 'r1'),
      text,
    }),
    fc.record({
      type: fc.constant('tool_call_delta' as const),
      at: fc.constant(at),
      turnId: fc.constant(turnId),
      toolCallId: fc.constantFrom('x', 'y'),
      toolName: fc.constant('f'),
      argumentsText: text,
    }),
    fc.record({
      type: fc.constant('custom_event' as const),
      at: fc.constant(at),
      name: fc.constant('n'),
      data: fc.integer(),
      isTransient: fc.constant(true),
    }),
  )

const mail: fc.Arbitrary<Op> = fc.record({
  type: fc.constant('durable' as const),
  event: fc.constantFrom<RuntimeEvent>(
    { type: 'value_set', at, key: 'k', value: 1 },
    { type: 'error_raised', at, code: 'X', message: 'from outside' },
  ),
  isLate: fc.boolean(),
  isMail: fc.constant(true),
})

const durable = (event: RuntimeEvent): Op => ({ type: 'durable', event })

/** One step: words, mail between them, the message, and its calls with progress. */
function stepOf(turnId: string, stepId: string): fc.Arbitrary<Op[]> {
  const shown = fc
    .array(speech(turnId), { minLength: 1, maxLength: 4 })
    .map((events): Op => ({ type: 'show', events }))
  const said = fc.array(fc.oneof({ weight: 3, arbitrary: shown }, mail), { maxLength: 6 })
  const progress = (toolCallId: string) =>
    fc.integer().map((output): Op => ({
      type: 'show',
      events: [{ type: 'tool_execution_progress', at, turnId, toolCallId, output }],
    }))
  const calls = fc.array(fc.oneof(progress('x'), progress('y'), mail), { maxLength: 5 })
  return fc
    .tuple(said, fc.constantFrom('message', 'retry', 'cut'), said, fc.boolean(), calls, calls)
    .map(([before, how, again, hasCalls, first, second]) => {
      const start = durable(stepStart(turnId, stepId))
      const ops = [start, ...before]
      if (how === 'cut')
        return [...ops, durable({ type: 'turn_end', at, turnId, outcome: 'interrupted' })]
      if (how === 'retry') ops.push(start, ...again)
      ops.push(durable(message(turnId, stepId, hasCalls)))
      if (!hasCalls) return [...ops, durable({ type: 'step_end', at, turnId, stepId })]
      return [
        ...ops,
        durable(started(turnId, `${stepId}x`)),
        durable(started(turnId, `${stepId}y`)),
        ...named(first, stepId),
        durable(ended(turnId, `${stepId}x`)),
        ...named(second, stepId).filter((op) => !isProgressOf(op, `${stepId}x`)),
        durable(ended(turnId, `${stepId}y`)),
        durable({ type: 'step_end', at, turnId, stepId }),
      ]
    })
}

function stepStart(turnId: string, stepId: string): RuntimeEvent {
  return { type: 'step_start', at, turnId, stepId, side: 'a', attempt: 1, epoch: 1 }
}

const named = (ops: readonly Op[], stepId: string): Op[] =>
  ops.map((op) =>
    op.type === 'show'
      ? {
          ...op,
          events: op.events.map((event) =>
            'toolCallId' in event ? { ...event, toolCallId: stepId + event.toolCallId } : event,
          ) as ShownEvent[],
        }
      : op,
  )

const isProgressOf = (op: Op, id: string): boolean =>
  op.type === 'show' && op.events.some((event) => 'toolCallId' in event && event.toolCallId === id)

function message(turnId: string, id: string, hasCalls: boolean): RuntimeEvent {
  const toolCalls = hasCalls && {
    toolCalls: [`${id}x`, `${id}y`].map((toolCallId) => ({
      toolCallId,
      toolName: 'f',
      arguments: {},
    })),
  }
  const content = [{ type: 'text', text: 'said' }] as const
  return {
    type: 'message_added',
    at,
    turnId,
    side: 'a',
    stepId: id,
    message: { id, type: 'assistant', timestamp: at, content, ...toolCalls },
  }
}

const started = (turnId: string, toolCallId: string): RuntimeEvent => ({
  type: 'tool_execution_start',
  at,
  turnId,
  toolCallId,
  toolName: 'f',
  epoch: 1,
})
const ended = (turnId: string, toolCallId: string): RuntimeEvent => ({
  type: 'tool_execution_end',
  at,
  turnId,
  toolCallId,
  toolName: 'f',
  outcome: 'success',
  result: 1,
})

const turnOf = (turnId: string): fc.Arbitrary<Op[]> =>
  fc
    .tuple(stepOf(turnId, `${turnId}s1`), stepOf(turnId, `${turnId}s2`), fc.boolean())
    .map(([first, second, ends]) => {
      const start = durable({ type: 'turn_start', at, turnId, agentId: 'a/a', side: 'a' })
      if (hasEnd(first)) return [start, ...first]
      if (hasEnd(second)) return [start, ...first, ...second]
      const outcome = ends ? 'completed' : 'interrupted'
      return [start, ...first, ...second, durable({ type: 'turn_end', at, turnId, outcome })]
    })

const hasEnd = (ops: readonly Op[]): boolean =>
  ops.some((op) => op.type === 'durable' && op.event.type === 'turn_end')

const script = fc
  .tuple(
    turnOf('u1'),
    turnOf('u2'),
    fc.nat(),
    fc.array(fc.boolean(), { minLength: 7, maxLength: 7 }),
  )
  .map(([first, second, cut, late]) =>
    [...first, ...second]
      .slice(0, -1 - (cut % 12))
      .map((op, index) =>
        op.type === 'durable' && !op.isMail ? { ...op, isLate: late[index % 7]! } : op,
      ),
  )
const readerOps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ take: fc.integer({ min: 0, max: 6 }) }) },
    { weight: 1, arbitrary: fc.constant<ReaderOp>('leave') },
  ),
  { minLength: 1, maxLength: 60 },
)

class World {
  readonly store: Store = memoryStore()
  readonly live: LiveBus
  readonly log: RuntimeEvent[] = []
  draft: ShownEvent[] = []
  /** Commits that were not told yet: one of the drain, one of others. */
  #lateDrain: (() => void) | undefined
  #lateMail: (() => void) | undefined

  constructor(pageSize: number) {
    this.live = createLiveBus({ store: this.store, clock: manualClock(), pageSize })
  }

  async begin(): Promise<void> {
    const create = {
      tenant: 'd',
      owner: null,
      agent: 'a',
      parentId: null,
      rootId: threadId,
      title: null,
      tags: [],
      clientId: null,
      createdAt: 0,
    }
    const event: RuntimeEvent = {
      type: 'thread_created',
      at,
      threadId,
      agent: 'a',
      version: 1,
      depth: 0,
    }
    this.log.push(event)
    await this.store.commit({ point: 'test', threads: [{ id: threadId, create, append: [event] }] })
  }

  async do(op: Op): Promise<void> {
    if (op.type === 'show') {
      this.#tellDrain()
      this.live.show(threadId, op.events)
      this.draft.push(...op.events)
      return
    }
    const { event, isLate = false, isMail = false } = op
    // A drain goes on only after its own commit was told.
    if (!isMail) this.#tellDrain()
    this.log.push(event)
    if (endsDraft(event)) this.draft = stillShown(this.draft, event)
    const append = { id: threadId, append: [event] }
    const { seqs } = await this.store.commit({ point: 'test', threads: [append] })
    const seq = seqs.get(threadId)!
    const tell = () => this.live.publish(threadId, [{ seq, event }])
    if (isLate && isMail) {
      this.#tellMail()
      this.#lateMail = tell
    } else if (isLate) this.#lateDrain = tell
    else {
      tell()
      if (isMail) this.#tellDrain()
      else this.#tellMail()
    }
  }

  end(): void {
    this.#tellMail()
    this.#tellDrain()
  }

  #tellDrain(): void {
    this.#lateDrain?.()
    this.#lateDrain = undefined
  }

  #tellMail(): void {
    this.#lateMail?.()
    this.#lateMail = undefined
  }

  expected(): FoldedThread {
    return fold([...this.log, ...this.draft])
  }
}

function stillShown(draft: readonly ShownEvent[], end: RuntimeEvent): ShownEvent[] {
  if (end.type !== 'tool_execution_end') return []
  return draft.filter(
    (event) => event.type === 'tool_execution_progress' && event.toolCallId !== end.toolCallId,
  )
}

const fold = (events: readonly ShownEvent[]): FoldedThread =>
  foldThread(events as unknown as UnknownThreadEvent[])

class Reader {
  readonly received: NumberedEvent[] = []
  readonly #live: LiveBus
  #iterator: AsyncIterator<NumberedEvent> | undefined
  #abort = new AbortController()
  #pending: Promise<void> | undefined
  #isDone = false

  constructor(live: LiveBus) {
    this.#live = live
  }

  /** Takes up to so many, as far as there are any. */
  async take(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      this.#ask()
      await quiet()
      if (this.#pending) return
    }
  }

  #ask(): void {
    if (this.#pending) return
    if (!this.#iterator) {
      this.#abort = new AbortController()
      this.#isDone = false
      const after = this.received.at(-1)?.id
      const options = { signal: this.#abort.signal, ...(after !== undefined && { after }) }
      this.#iterator = this.#live.subscribe(threadId, options)[Symbol.asyncIterator]()
    }
    this.#pending = this.#iterator.next().then(({ done, value }) => {
      if (done) this.#isDone = true
      else this.received.push(value)
      this.#pending = undefined
    })
  }

  async leave(): Promise<void> {
    this.#abort.abort()
    await this.#pending
    await this.#iterator?.return?.()
    this.#iterator = undefined
  }

  async takeAll(): Promise<void> {
    do {
      this.#ask()
      await quiet()
    } while (!this.#pending && !this.#isDone)
  }

  get state(): FoldedThread {
    return fold(this.received.map(({ event }) => event))
  }
}

/** Everything that can happen without a timer has happened. */
const quiet = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Merged deltas are fewer events, and nothing else. */
const sameState = (actual: FoldedThread, expected: FoldedThread) => {
  const { eventCount: _a, ...one } = actual
  const { eventCount: _b, ...other } = expected
  expect(one).toEqual(other)
}

/**
 * A step is tried again, and mail is published before the event that says so. A reader that has that event
 * from the store and reconnects must not receive the words of the first try again.
 */
const unpublishedRetry: Op[] = [
  durable({ type: 'turn_start', at, turnId: 'u1', agentId: 'a/a', side: 'a' }),
  durable(stepStart('u1', 'u1s1')),
  {
    type: 'show',
    events: [
      {
        type: 'tool_call_delta',
        at,
        turnId: 'u1',
        toolCallId: 'x',
        toolName: 'f',
        argumentsText: '',
      },
    ],
  },
  { type: 'durable', event: stepStart('u1', 'u1s1'), isLate: true },
  {
    type: 'durable',
    event: { type: 'value_set', at, key: 'k', value: 1 },
    isLate: true,
    isMail: true,
  },
  {
    type: 'durable',
    event: { type: 'value_set', at, key: 'k', value: 2 },
    isLate: true,
    isMail: true,
  },
]

test(
  'whatever a reader misses, the fold of what it got is the fold of the log and the running draft',
  { timeout },
  async () => {
    await fc.assert(
      fc.asyncProperty(
        script,
        readerOps,
        fc.integer({ min: 1, max: 5 }),
        async (ops, reads, pageSize) => {
          const world = new World(pageSize)
          await world.begin()
          const reader = new Reader(world.live)
          let next = 0
          for (const op of ops) {
            await world.do(op)
            const read = reads[next++ % reads.length]!
            if (read === 'leave') await reader.leave()
            else await reader.take(read.take)
          }
          world.end()
          await reader.takeAll()
          sameState(reader.state, world.expected())

          const late = new Reader(world.live)
          await late.takeAll()
          sameState(late.state, world.expected())

          const whole = reader.received.filter(({ event }) => !isShown(event))
          expect(whole.map(({ event }) => event)).toEqual(world.log)
          expect(whole.map(({ id }) => Number.parseInt(id, 10))).toEqual(
            world.log.map((_, index) => index + 1),
          )
          expect(new Set(reader.received.map(({ id }) => id)).size).toBe(reader.received.length)

          await reader.leave()
          await late.leave()
          expect(world.live.readers).toBe(0)
        },
      ),
      { numRuns, examples: [[unpublishedRetry, [{ take: 100 }, 'leave'], 1]] },
    )
  },
)

test(
  'a reader that does not want deltas gets the log with whole numbers',
  { timeout },
  async () => {
    await fc.assert(
      fc.asyncProperty(script, fc.nat(), async (ops, place) => {
        const world = new World(3)
        await world.begin()
        const abort = new AbortController()
        const got: NumberedEvent[] = []
        const after = String(place % 3)
        const reading = (async () => {
          for await (const event of world.live.subscribe(threadId, {
            after,
            includesDeltas: false,
            signal: abort.signal,
          }))
            got.push(event)
        })()
        for (const op of ops) {
          await world.do(op)
          if (place % 2 === 0) await quiet()
        }
        world.end()
        await quiet()
        await quiet()
        abort.abort()
        await reading
        expect(got).toEqual(
          world.log.map((event, index) => ({ id: `${index + 1}`, event })).slice(Number(after)),
        )
      }),
      { numRuns: Math.round(numRuns / 2) },
    )
  },
)

function isShown({ type }: ShownEvent): boolean {
  return [
    'text_delta',
    'reasoning_delta',
    'tool_call_delta',
    'tool_execution_progress',
    'custom_event',
    'step_reset',
  ].includes(type)
}
