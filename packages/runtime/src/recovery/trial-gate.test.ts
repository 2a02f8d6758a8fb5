import fc from 'fast-check'
import { expect, test } from 'vitest'
import { manualTimers } from '../testing/simulation.ts'
import { createTrialGate, type Suspect, type Trial, type GatePlace } from './trial-gate.ts'

const suspect = (more: Partial<Suspect> = {}): Suspect => ({
  open: 'call',
  deaths: 1,
  survived: 0,
  charges: 0,
  ...more,
})

class Stage {
  readonly timers = manualTimers()
  readonly gate = createTrialGate(this.timers)
  readonly entered: string[] = []
  readonly trials = new Map<string, Trial | undefined>()
  readonly places = new Map<string, GatePlace>()

  arrive(...names: string[]): void {
    for (const name of names) this.places.set(name, this.gate.arrive())
  }

  async enter(name: string, given?: Suspect, signal = new AbortController().signal): Promise<void> {
    void this.places
      .get(name)!
      .enter(given, signal)
      .then((trial) => {
        this.entered.push(name)
        this.trials.set(name, trial)
      })
    await this.timers.advance(0)
  }

  async leave(name: string): Promise<void> {
    this.places.get(name)!.leave()
    await this.timers.advance(0)
  }
}

test('without suspects everybody works at once', async () => {
  const stage = new Stage()
  stage.arrive('a', 'b')
  await stage.enter('a')
  await stage.enter('b')
  expect(stage.entered).toEqual(['a', 'b'])
  stage.arrive('c')
  await stage.enter('c')
  expect(stage.entered).toEqual(['a', 'b', 'c'])
  expect(stage.timers.pending()).toEqual([])
})

test('the first suspect is alone, though others arrived and asked before it', async () => {
  const stage = new Stage()
  stage.arrive('new', 'model', 'call')
  await stage.enter('new')
  await stage.enter('model', suspect({ open: 'inference', deaths: 3 }))
  expect(stage.entered).toEqual([])
  await stage.enter('call', suspect())
  expect(stage.entered).toEqual(['call'])
  expect(stage.trials.get('call')).toMatchObject({ ms: 500 })
  await stage.leave('call')
  expect(stage.entered).toEqual(['call', 'model'])
  expect(stage.trials.get('model')).toBeDefined()
  await stage.leave('model')
  expect(stage.entered).toEqual(['call', 'model', 'new'])
})

test('a suspect that works on after its trial leaves the next one without a trial', async () => {
  const stage = new Stage()
  stage.arrive('one', 'two')
  await stage.enter('one', suspect())
  await stage.enter('two', suspect())
  stage.trials.get('one')?.end()
  await stage.timers.advance(0)
  expect(stage.entered).toEqual(['one', 'two'])
  expect(stage.trials.get('two')).toBeUndefined()
})

test('where other threads work, suspects do not wait: a death could not be charged to them', async () => {
  const stage = new Stage()
  stage.arrive('new')
  await stage.enter('new')
  const names = Array.from({ length: 40 }, (_, n) => `taken ${n}`)
  stage.arrive(...names)
  for (const name of names) await stage.enter(name, suspect())
  expect(stage.entered).toEqual(['new', ...names])
  expect(stage.trials.get('taken 7')).toBeUndefined()
})

test('after the first trial, a process that has just started lets all others work', async () => {
  const stage = new Stage()
  const names = Array.from({ length: 40 }, (_, n) => `call ${n}`)
  stage.arrive(...names)
  for (const name of names) await stage.enter(name, suspect())
  expect(stage.entered).toEqual(['call 0'])
  stage.trials.get('call 0')?.end()
  await stage.timers.advance(0)
  expect(stage.entered).toEqual(names)
})

test('of those that have survived as many trials, the one with the most deaths is first', async () => {
  const stage = new Stage()
  stage.arrive('once', 'often')
  await stage.enter('once', suspect())
  await stage.enter('often', suspect({ deaths: 3 }))
  expect(stage.entered).toEqual(['often'])
})

test('who has survived the fewest trials is first, so that each is alone in some life', async () => {
  const stage = new Stage()
  stage.arrive('often', 'seldom', 'last')
  await stage.enter('often', suspect({ survived: 3, deaths: 4 }))
  await stage.enter('seldom', suspect({ survived: 1, deaths: 4 }))
  await stage.enter('last', suspect({ open: 'inference', deaths: 4 }))
  expect(stage.entered).toEqual(['seldom'])
  expect(stage.trials.get('seldom')?.ms).toBe(1_000)
})

test('a model call needs a trial only after the third death', async () => {
  const stage = new Stage()
  stage.arrive('a', 'b')
  await stage.enter('a', suspect({ open: 'inference', deaths: 2 }))
  await stage.enter('b', suspect({ open: 'nothing', deaths: 2 }))
  expect(stage.entered).toEqual(['a', 'b'])
  expect([...stage.trials.values()]).toEqual([undefined, undefined])
})

test('threads without suspicion wait five seconds at most', async () => {
  const stage = new Stage()
  stage.arrive('call', 'new')
  await stage.enter('call', suspect())
  await stage.enter('new')
  await stage.timers.advance(4_999)
  expect(stage.entered).toEqual(['call'])
  await stage.timers.advance(1)
  expect(stage.entered).toEqual(['call', 'new'])
})

test('a charged thread waits before its trial, and longer each time', async () => {
  for (const [charges, ms] of [
    [1, 1_000],
    [4, 8_000],
    [12, 30_000],
  ] as const) {
    const stage = new Stage()
    stage.arrive('guilty', 'new')
    await stage.enter('guilty', suspect({ charges }))
    await stage.enter('new')
    expect(stage.entered).toEqual(['new'])
    await stage.timers.advance(ms - 1)
    expect(stage.entered).toEqual(['new'])
    await stage.timers.advance(1)
    expect(stage.entered).toEqual(['new', 'guilty'])
    // It was found guilty once: it is charged again also beside others.
    expect(stage.trials.get('guilty')).toBeDefined()
  }
})

test('an abort ends every wait, and a drain that leaves early holds nobody up', async () => {
  const stage = new Stage()
  const controller = new AbortController()
  stage.arrive('call', 'stopped', 'gone', 'new')
  await stage.enter('call', suspect())
  await stage.enter('stopped', suspect({ charges: 2 }), controller.signal)
  await stage.enter('new')
  expect(stage.entered).toEqual([])
  await stage.leave('gone') // its thread was held by another process
  expect(stage.entered).toEqual(['call'])
  controller.abort()
  await stage.timers.advance(0)
  expect(stage.entered).toEqual(['call', 'stopped'])
  await stage.leave('call')
  expect(stage.entered).toEqual(['call', 'stopped', 'new'])
})

test('law: a trial that is charged for the first time has nobody beside it; nobody waits for ever', async () => {
  const arrival = fc.record({
    isSuspect: fc.boolean(),
    open: fc.constantFrom('call', 'inference', 'nothing' as const),
    deaths: fc.integer({ min: 1, max: 5 }),
    survived: fc.integer({ min: 0, max: 3 }),
    after: fc.integer({ min: 0, max: 700 }),
    works: fc.integer({ min: 0, max: 3_000 }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(arrival, { minLength: 1, maxLength: 12 }), async (arrivals) => {
      const timers = manualTimers()
      const gate = createTrialGate(timers)
      const working = new Set<number>()
      /** Whoever was charged, with those that began beside it during its trial. */
      const wrong: string[] = []
      let onTrial: number | undefined
      let ended = 0
      const drain = async (index: number, given: (typeof arrivals)[number]): Promise<void> => {
        const place = gate.arrive()
        const { isSuspect, open, deaths, survived, works } = given
        const one = isSuspect ? { open, deaths, survived, charges: 0 } : undefined
        const trial = await place.enter(one, new AbortController().signal)
        if (trial && working.size > 0) wrong.push(`${index} is not alone`)
        if (trial && onTrial !== undefined) wrong.push(`${index} and ${onTrial} are on trial`)
        working.add(index)
        if (trial) onTrial = index
        const end = (): void => {
          if (onTrial === index) onTrial = undefined
          trial?.end()
        }
        if (trial) timers.set(trial.ms, end)
        await new Promise<void>((resolve) => timers.set(works, resolve))
        working.delete(index)
        if (onTrial === index) onTrial = undefined
        place.leave()
        ended++
      }
      for (const [index, one] of arrivals.entries()) {
        await timers.advance(one.after)
        void drain(index, one)
      }
      await timers.advance(0)
      for (let i = 0; i < 500 && (await timers.advanceToNext()); i++);
      expect(wrong).toEqual([])
      expect(ended).toBe(arrivals.length)
    }),
    { numRuns: process.env['SKEIN_DEEP'] ? 5_000 : 300, seed: 43 },
  )
})
