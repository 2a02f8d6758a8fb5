import { manualClock, type TestFunctions } from '@skein/base'
import type { Dispatcher, Drain, Timers } from '../dispatch/dispatcher.ts'
import { memoryStore } from '../store/memory-store.ts'
import type { Store } from '../store/store.ts'
import { addThreads, same } from './contract.ts'
import { manualTimers, type ManualTimers } from './simulation.ts'

/** The dispatcher that `describeDispatcher` tests. */
export interface DispatcherContract {
  readonly name: string
  /** Creates a dispatcher that uses this store and these timers. */
  readonly open: (parts: { readonly store: Store; readonly timers: Timers }) => Dispatcher
}

/** Defines the tests that every dispatcher has to pass, for any test runner. Time is virtual. */
export function describeDispatcher(functions: TestFunctions, contract: DispatcherContract): void {
  functions.describe(`dispatcher ${contract.name}`, () => {
    for (const [title, body] of Object.entries(cases))
      functions.test(title, async () => {
        const store = memoryStore()
        const timers = manualTimers(manualClock(1000))
        const dispatcher = contract.open({ store, timers })
        const rig = new Rig(store, timers, dispatcher)
        await addThreads(store, 'a', 'b', 'c')
        await body(rig)
        rig.finishAll()
        await dispatcher.stop()
      })
  })
}

type Case = (rig: Rig) => Promise<void>

interface Run {
  readonly id: string
  readonly signal: AbortSignal
  /** Ends the drain; before that, it parks the thread unless `parks` is false. */
  end(outcome?: {
    readonly wakeAt?: number
    readonly parks?: boolean
    readonly error?: Error
  }): void
}

/** A dispatcher whose drains end when the test ends them. */
class Rig {
  readonly store: Store
  readonly timers: ManualTimers
  readonly dispatcher: Dispatcher
  /** Every drain that was started, in order. */
  readonly runs: Run[] = []
  /** Whether drains end by themselves. */
  isAutomatic = false

  constructor(store: Store, timers: ManualTimers, dispatcher: Dispatcher) {
    this.store = store
    this.timers = timers
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

  finishAll(): void {
    this.isAutomatic = true
    for (const run of this.runs) run.end()
  }
}

/** Records whether a promise has resolved, without waiting for it. */
function watch(promise: Promise<void>): { isDone: boolean } {
  const state = { isDone: false }
  void promise.then(() => (state.isDone = true))
  return state
}

const cases: Readonly<Record<string, Case>> = {
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
  'mail that came after the drain had looked is not forgotten, told or not': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    rig.dispatcher.wake('a')
    await rig.timers.advance(0)
    await rig.ask('a', 1000, false)
    await rig.end(0, { parks: false })
    same(rig.ids, 'aa', 'the drains')
  },
  'threads are drained beside each other': async (rig) => {
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
    same(rig.ids, 'aa', 'the drains at once')
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
    await rig.dispatcher.idle()
    await rig.ask('a', 1000)
    await rig.ask('b', 1000)
    const [a, c] = [watch(rig.dispatcher.settled('a')), watch(rig.dispatcher.settled('c'))]
    const idle = watch(rig.dispatcher.idle())
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
  'idle sees what nobody told the dispatcher about': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    await rig.ask('a', 500, false)
    const idle = watch(rig.dispatcher.idle())
    await rig.timers.advance(0)
    same([rig.ids, idle.isDone], ['a', false], 'the drains')
    await rig.end(0)
    same(idle.isDone, true, 'idle')
  },
  'a stopped dispatcher lets drains end, aborts the rest and begins nothing': async (rig) => {
    await rig.dispatcher.start(rig.drain)
    await rig.ask('a', 1000)
    await rig.ask('b', 1000)
    const stopped = watch(rig.dispatcher.stop({ graceMs: 50 }))
    rig.dispatcher.wake('c')
    rig.dispatcher.wake('a')
    await rig.end(0)
    await rig.timers.advance(49)
    same([rig.runs[1]?.signal.aborted, stopped.isDone], [false, false], 'within the grace')
    await rig.timers.advance(1)
    same([rig.runs[1]?.signal.aborted, stopped.isDone], [true, false], 'after the grace')
    await rig.end(1, { error: new Error('aborted') })
    same([stopped.isDone, rig.ids], [true, 'ab'], 'the end')
    await rig.timers.advance(100_000)
    same([rig.ids, rig.timers.pending()], ['ab', []], 'long after')
  },
}
