import { manualClock, type TestFunctions } from '@skein/base'
import {
  type Dispatcher,
  type Drain,
  idle,
  settled,
  systemTimers,
  type Timers,
} from '../dispatch/dispatcher.ts'
import { memoryStore } from '../store/memory-store.ts'
import type { Store } from '../store/store.ts'
import { addThreads, same } from './contract.ts'
import { manualTimers, type ManualTimers } from './simulation.ts'

/** The dispatcher that `describeDispatcher` tests. */
export interface DispatcherContract {
  readonly name: string
  /** Creates a dispatcher that uses this store and these timers. */
  readonly open: (parts: {
    readonly store: Store
    readonly timers: Timers
    readonly onError: (error: unknown) => void
  }) => Dispatcher
  /**
   * `virtual` (default): all cases, with time that the suite controls. `real`: only the cases that a
   * dispatcher outside the process has to pass, with the system's time and small delays.
   */
  readonly time?: 'virtual' | 'real'
}

/** Defines the tests that every dispatcher has to pass, for any test runner. */
export function describeDispatcher(functions: TestFunctions, contract: DispatcherContract): void {
  const { name, open, time = 'virtual' } = contract
  functions.describe(`dispatcher ${name}`, () => {
    if (time === 'virtual')
      for (const [title, body] of Object.entries(virtualCases))
        functions.test(title, async () => {
          const store = memoryStore()
          const timers = manualTimers(manualClock(1000))
          const rig = new Rig(store, timers, open({ store, timers, onError: () => {} }))
          await addThreads(store, 'a', 'b', 'c')
          await body(rig)
          rig.finishAll()
          await rig.dispatcher.stop()
        })
    else
      for (const [title, body] of Object.entries(realCases))
        functions.test(title, async () => {
          const store = memoryStore()
          const timers = systemTimers()
          const errors: unknown[] = []
          const onError = (error: unknown): void => void errors.push(error)
          const rig = new RealRig(store, open({ store, timers, onError }), errors)
          await addThreads(store, 'a', 'b', 'c')
          try {
            await body(rig)
          } finally {
            rig.finishAll()
            await rig.dispatcher.stop()
          }
        })
  })
}

interface Run {
  readonly id: string
  readonly signal: AbortSignal
  /** Ends the drain. It first writes when the thread is due again, unless `parks` is false. */
  end(outcome?: {
    readonly wakeAt?: number
    readonly parks?: boolean
    readonly error?: Error
  }): void
}

/** A dispatcher for which work on a thread (a drain) ends only when the test ends it. */
class Drains {
  readonly store: Store
  readonly dispatcher: Dispatcher
  /** Every drain that was started, in order. */
  readonly runs: Run[] = []
  /** Whether drains end by themselves. */
  isAutomatic = false

  constructor(store: Store, dispatcher: Dispatcher) {
    this.store = store
    this.dispatcher = dispatcher
  }

  readonly drain: Drain = async (id, signal) => {
    const outcome = await new Promise<Parameters<Run['end']>[0]>((resolve) => {
      this.runs.push({ id, signal, end: (how) => resolve(how ?? {}) })
      if (this.isAutomatic) resolve({})
    })
    if (outcome?.error) throw outcome.error
    if (outcome?.parks === false) return
    const exactly = outcome?.wakeAt ?? null
    await this.store.commit({ point: 'park', threads: [{ id, wake: { exactly } }] })
  }

  get ids(): string {
    return this.runs.map(({ id }) => id).join('')
  }

  finishAll(): void {
    this.isAutomatic = true
    for (const run of this.runs) run.end()
  }
}

/** A dispatcher under test whose time passes only when the test says so. */
class Rig extends Drains {
  readonly timers: ManualTimers

  constructor(store: Store, timers: ManualTimers, dispatcher: Dispatcher) {
    super(store, dispatcher)
    this.timers = timers
  }

  /** Writes a wake-up time to the store, and notifies the dispatcher unless `isTold` is false. */
  async ask(id: string, by: number, isTold = true): Promise<void> {
    await this.store.commit({ point: 'ask', threads: [{ id, wake: { by } }] })
    if (isTold) this.dispatcher.wake(id, by)
    await this.timers.advance(0)
  }

  async end(index: number, how?: Parameters<Run['end']>[0]): Promise<void> {
    this.runs[index]?.end(how)
    await this.timers.advance(0)
  }

  idle(): Promise<void> {
    return idle(this)
  }
}

/** How long a case in real time waits for something that must happen, and for something that must not happen. */
const PATIENCE_MS = 10_000
const QUIET_MS = 250

/** A dispatcher under test in real time, for dispatchers that work outside the process. */
class RealRig extends Drains {
  readonly errors: readonly unknown[]

  constructor(store: Store, dispatcher: Dispatcher, errors: readonly unknown[]) {
    super(store, dispatcher)
    this.errors = errors
  }

  /** Makes a thread due in `ms`, and notifies the dispatcher unless `isTold` is false. */
  async ask(id: string, ms = 0, isTold = true): Promise<void> {
    const by = Date.now() + ms
    await this.store.commit({ point: 'ask', threads: [{ id, wake: { by } }] })
    if (isTold) this.dispatcher.wake(id, by)
  }

  end(index: number, how?: Parameters<Run['end']>[0]): void {
    this.runs[index]?.end(how)
  }

  /** Waits until work has begun on as many threads as there are ids, then a little longer, and compares which ones. */
  async shows(ids: string, what: string): Promise<void> {
    await this.until(() => this.runs.length >= ids.length)
    await pass(QUIET_MS)
    same([...this.ids].toSorted().join(''), [...ids].toSorted().join(''), what)
  }

  async until(isDone: () => boolean): Promise<void> {
    const end = performance.now() + PATIENCE_MS
    while (!isDone() && performance.now() < end) await pass(5)
  }
}

function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Records whether a promise has resolved, without waiting for it. */
function watch(promise: Promise<void>): { isDone: boolean } {
  const state = { isDone: false }
  void promise.then(() => (state.isDone = true))
  return state
}

const virtualCases: Readonly<Record<string, (rig: Rig) => Promise<void>>> = {
  'what the store wants is drained at the start, the longest waiting first': async (rig) => {
    await rig.ask('b', 20, false)
    await rig.ask('c', 10, false)
    await rig.dispatcher.start(rig.drain)
    await rig.timers.advance(0)
    same(rig.ids, 'cb', 'the drains')
  },
  'nothing is drained before the start; then it is': async (rig) => {
    rig.dispatcher.wake('a')
    await rig.timers.advance(10)
    same(rig.ids, '', 'the drains before')
    await rig.dispatcher.start(rig.drain)
    await rig.timers.advance(0)
    same(rig.ids, 'a', 'the drains after')
  },
  'a thread is drained once at a time; a wake meanwhile makes one more': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    for (let i = 0; i < 5; i++) rig.dispatcher.wake('a')
    await rig.timers.advance(0)
    same(rig.ids, 'a', 'the drains')
    for (let i = 0; i < 5; i++) rig.dispatcher.wake('a')
    await rig.timers.advance(0)
    same(rig.ids, 'a', 'the drains while the first runs')
    await rig.end(0)
    same(rig.ids, 'aa', 'the drains after the first')
    await rig.end(1)
    same(rig.ids, 'aa', 'the drains after the second')
  },
  'a message that came after the drain had looked is not forgotten, with or without a wake': async (
    rig,
  ) => {
    await rig.dispatcher.start(rig.drain)
    rig.dispatcher.wake('a')
    await rig.timers.advance(0)
    await rig.ask('a', 1000, false)
    await rig.end(0, { parks: false })
    same(rig.ids, 'aa', 'the drains')
  },
  'threads are drained concurrently': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    for (const id of ['a', 'b', 'c']) rig.dispatcher.wake(id)
    await rig.timers.advance(0)
    same(rig.ids, 'abc', 'the drains')
  },
  'a thread is drained when its time comes, not before': async (rig) => {
    await rig.ask('a', 5000, false)
    await rig.dispatcher.start(rig.drain)
    await rig.ask('b', 3000)
    await rig.timers.advance(1999)
    same(rig.ids, '', 'the drains at 2999')
    await rig.timers.advance(1)
    same(rig.ids, 'b', 'the drains at 3000')
    await rig.end(0, { wakeAt: 4000 })
    await rig.timers.advance(1000)
    same(rig.ids, 'bb', 'the drains at 4000')
    await rig.timers.advance(1000)
    same(rig.ids, 'bba', 'the drains at 5000: another that runs does not hide it')
  },
  'a time that was put off or taken back is not kept': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    await rig.ask('a', 2000)
    await rig.ask('b', 2000)
    const threads = [
      { id: 'a', wake: { exactly: 9000 } },
      { id: 'b', wake: { exactly: null } },
    ]
    await rig.store.commit({ point: 'later', threads })
    await rig.timers.advance(7999)
    same(rig.ids, '', 'the drains before 9000')
    await rig.timers.advance(1)
    same(rig.ids, 'a', 'the drains at 9000')
  },
  'a drain that fails is run again, later each time': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    await rig.ask('a', 1000)
    const waits: number[] = []
    for (let i = 0; i < 12; i++) {
      const before = rig.timers.now()
      await rig.end(i, { error: new Error('no') })
      same(rig.runs.length, i + 1, 'the drains before the wait')
      await rig.timers.advanceToNext()
      same(rig.runs.length, i + 2, 'the drains after the wait')
      waits.push(rig.timers.now() - before)
    }
    same(waits[0], 100, 'the first wait')
    const doubles = waits.map((_, index) => Math.min(100 * 2 ** index, 30_000))
    same(waits, doubles, 'the waits')
    await rig.end(12)
    same(rig.timers.pending(), [], 'the timers after it went well')
  },
  'a wake does not wait for the next try, and one failure does not slow others': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    await rig.ask('a', 1000)
    await rig.end(0, { error: new Error('no') })
    await rig.ask('b', 1000)
    same(rig.ids, 'ab', 'the drains')
    rig.dispatcher.wake('a')
    await rig.timers.advance(0)
    same(rig.ids, 'aba', 'the drains after a wake')
  },
  'a drain that ends but does not park is not run in a hot loop': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    await rig.ask('a', 1000)
    await rig.end(0, { parks: false })
    await rig.end(1, { parks: false })
    same(rig.ids, 'aa', 'the concurrent drains')
    await rig.timers.advance(100)
    same(rig.ids, 'aaa', 'the drains after a while')
  },
  'an interrupt reaches the drain of that thread with its reason': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    await rig.ask('a', 1000)
    await rig.ask('b', 1000)
    rig.dispatcher.interrupt('a', 'stop button')
    rig.dispatcher.interrupt('nobody', 'nothing')
    same(
      [rig.runs[0]?.signal.reason, rig.runs[1]?.signal.aborted],
      ['stop button', false],
      'signals',
    )
    await rig.end(0, { error: new Error('aborted') })
    same(rig.ids, 'aba', 'the drains: the store still wants it')
    same(rig.runs[2]?.signal.aborted, false, 'the new signal')
  },
  'settled waits for one thread, idle for all that is due': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    await rig.idle()
    await rig.ask('a', 1000)
    await rig.ask('b', 1000)
    const [a, c] = [watch(settled(rig, 'a')), watch(settled(rig, 'c'))]
    const idle = watch(rig.idle())
    await rig.timers.advance(0)
    same([a.isDone, c.isDone, idle.isDone], [false, true, false], 'at first')
    rig.dispatcher.wake('a')
    await rig.end(0)
    same(a.isDone, false, 'settled while another drain was asked for')
    await rig.end(2)
    same([a.isDone, idle.isDone], [true, false], 'after a')
    await rig.end(1, { wakeAt: 9000 })
    same(idle.isDone, true, 'after b, which waits for its time')
  },
  'idle sees threads that no wake named': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    await rig.ask('a', 500, false)
    const idle = watch(rig.idle())
    await rig.timers.advance(0)
    same([rig.ids, idle.isDone], ['a', false], 'the drains')
    await rig.end(0)
    same(idle.isDone, true, 'idle')
  },
  'a stopped dispatcher lets drains end, aborts the rest and begins nothing': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    await rig.ask('a', 1000)
    await rig.ask('b', 1000)
    const stopping = watch(rig.dispatcher.stop({ graceMs: 50 }))
    rig.dispatcher.wake('c')
    rig.dispatcher.wake('a')
    await rig.end(0)
    await rig.timers.advance(49)
    same([rig.runs[1]?.signal.aborted, stopping.isDone], [false, false], 'within the grace')
    await rig.timers.advance(1)
    same([rig.runs[1]?.signal.aborted, stopping.isDone], [true, false], 'after the grace')
    await rig.end(1, { error: new Error('aborted') })
    same([stopping.isDone, rig.ids], [true, 'ab'], 'the end')
    await rig.timers.advance(100_000)
    same([rig.ids, rig.timers.pending()], ['ab', []], 'long after')
  },
}

const realCases: Readonly<Record<string, (rig: RealRig) => Promise<void>>> = {
  'what is due in the store is drained at the start, also without a wake': async (rig) => {
    await rig.ask('b', 0, false)
    await rig.ask('c')
    await pass(50)
    same(rig.ids, '', 'the drains before the start')
    await rig.dispatcher.start(rig.drain)
    await rig.shows('bc', 'the drains')
  },
  'a thread is drained once at a time; a message meanwhile makes one more': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    for (let i = 0; i < 5; i++) await rig.ask('a')
    await rig.shows('a', 'the drains')
    for (let i = 0; i < 5; i++) await rig.ask('a')
    await rig.shows('a', 'the drains while the first runs')
    rig.end(0, { parks: false })
    await rig.shows('aa', 'the drains after the first')
    rig.end(1)
    await rig.shows('aa', 'the drains after the second')
  },
  'a thread that has nothing to do is not drained': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    for (let i = 0; i < 20; i++) rig.dispatcher.wake('a')
    rig.dispatcher.wake('nobody')
    await rig.ask('b')
    await rig.shows('b', 'the drains')
    same(rig.errors, [], 'the errors')
  },
  'threads are drained concurrently': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    for (const id of ['a', 'b', 'c']) await rig.ask(id)
    await rig.shows('abc', 'the drains')
  },
  'a lost wake-up is found': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    await rig.ask('a', 0, false)
    await rig.shows('a', 'the drains')
  },
  'a thread is drained when its time comes, not before': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    const askedAt = performance.now()
    await rig.ask('a', 600)
    await rig.until(() => rig.runs.length > 0)
    const late = performance.now() - askedAt - 600
    same([late > -20, late < 3000], [true, true], `the drain, ${late} ms after its time`)
    rig.end(0, { wakeAt: Date.now() + 300 })
    await rig.shows('aa', 'the drains: another time was set when the thread parked')
  },
  'a time that was put off or taken back is not kept': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    await rig.ask('a', 300)
    await rig.ask('b', 300)
    const by = Date.now() + 1500
    const threads = [
      { id: 'a', wake: { exactly: by } },
      { id: 'b', wake: { exactly: null } },
    ]
    await rig.store.commit({ point: 'later', threads })
    rig.dispatcher.wake('a', by)
    await pass(900)
    same(rig.ids, '', 'the drains before the new time')
    await rig.shows('a', 'the drains after it')
  },
  'a drain that fails is run again, later each time': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    await rig.ask('a')
    const times: number[] = []
    for (let i = 0; i < 4; i++) {
      await rig.until(() => rig.runs.length > i)
      times.push(performance.now())
      rig.end(i, { error: new Error('no') })
    }
    await rig.until(() => rig.runs.length > 4)
    rig.end(4)
    const waits = times.slice(1).map((time, index) => time - times[index]!)
    same(
      waits.map((wait, index) => wait >= 90 * 2 ** index),
      [true, true, true],
      `the waits ${waits.join(' ')}`,
    )
    await rig.shows('aaaaa', 'the drains')
    same(rig.errors.length, 4, 'the errors')
  },
  'a message does not wait for the next try, and one failure does not slow others': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    await rig.ask('a')
    for (let i = 0; i < 5; i++) {
      await rig.until(() => rig.runs.length > i)
      rig.end(i, { error: new Error('no') })
    }
    const failedAt = performance.now() // the next try is in 1600 ms
    await rig.ask('b')
    await rig.ask('a')
    await rig.until(() => rig.runs.length >= 7)
    same(performance.now() - failedAt < 1400, true, 'the drains came before the next try')
    same(rig.ids.slice(5).split('').toSorted(), ['a', 'b'], 'the drains')
  },
  'a drain that ends but does not park is not run in a hot loop': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    await rig.ask('a')
    const isEnding = setInterval(() => rig.runs.forEach((run) => run.end({ parks: false })), 1)
    await pass(1000)
    clearInterval(isEnding)
    same(rig.runs.length > 1 && rig.runs.length < 10, true, `${rig.runs.length} drains`)
  },
  'an interrupt reaches the drain of that thread with its reason': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    await rig.ask('a')
    await rig.ask('b')
    await rig.until(() => rig.runs.length === 2)
    const [a, b] = rig.runs.toSorted((one, other) => (one.id < other.id ? -1 : 1))
    rig.dispatcher.interrupt('a', 'stop button')
    rig.dispatcher.interrupt('nobody', 'nothing')
    same([a?.signal.reason, b?.signal.aborted], ['stop button', false], 'signals')
    a?.end({ error: new Error('aborted') })
    await rig.until(() => rig.runs.length === 3)
    same([rig.runs[2]?.id, rig.runs[2]?.signal.aborted], ['a', false], 'the store still wants it')
  },
  'a hundred threads are drained, each once': async (rig) => {
    const ids = Array.from({ length: 100 }, (_, index) => `t${index}`)
    await addThreads(rig.store, ...ids)
    rig.isAutomatic = true
    await rig.dispatcher.start(rig.drain)
    await Promise.all(ids.map((id) => rig.ask(id)))
    await rig.until(() => rig.runs.length >= 100)
    await pass(QUIET_MS)
    same(new Set(rig.runs.map(({ id }) => id)).size, 100, 'the threads')
    same(rig.runs.length, 100, 'the drains')
  },
  'a stopped dispatcher lets drains end, aborts the rest and begins nothing': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    await rig.ask('a')
    await rig.ask('b')
    await rig.until(() => rig.runs.length === 2)
    const stopping = watch(rig.dispatcher.stop({ graceMs: 400 }))
    await rig.ask('c')
    rig.end(0)
    await pass(200)
    same([rig.runs[1]?.signal.aborted, stopping.isDone], [false, false], 'within the grace')
    await rig.until(() => rig.runs[1]?.signal.aborted === true)
    same([rig.runs[1]?.signal.aborted, stopping.isDone], [true, false], 'after the grace')
    rig.end(1, { error: new Error('aborted') })
    await rig.until(() => stopping.isDone)
    same([stopping.isDone, rig.runs.length], [true, 2], 'the end')
  },
}
