import { manualClock } from '@skein/base'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SharedBuckets } from '../../src/limits/shared-buckets.ts'
import { TokenBuckets } from '../../src/limits/token-buckets.ts'
import { memoryStore, type Commit, type Store } from '@skein/runtime'

const START = Date.UTC(2026, 0, 1)
const numRuns = process.env['SKEIN_DEEP'] ? 2000 : 100

/** A store whose answers take a turn of the event loop, so that nodes overtake one another. */
function slowStore(): { readonly store: Store; readonly commits: Commit[] } {
  const inner = memoryStore()
  const commits: Commit[] = []
  const store = new Proxy(inner, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return async (...given: unknown[]) => {
        if (name === 'commit') commits.push(given[0] as Commit)
        await new Promise((resolve) => setImmediate(resolve))
        return member.apply(target, given) as unknown
      }
    },
  })
  return { store, commits }
}

test('two nodes never admit more than one server would, whatever comes when', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(1, 7, 30, 60, 600, 6000),
      fc.integer({ min: 0, max: 86_400_000 }),
      fc.array(
        fc.record({
          wait: fc.oneof(fc.constant(0), fc.integer({ max: 3_000, min: 0 }), fc.constant(40_000)),
          count: fc.integer({ min: 1, max: 60 }),
          node: fc.nat({ max: 1 }),
          account: fc.constantFrom('x', 'x', 'y'),
        }),
        { maxLength: 25 },
      ),
      async (perMinute, offset, load) => {
        const clock = manualClock(START + offset)
        const { store } = slowStore()
        const nodes = [0, 1].map(() => new SharedBuckets({ perMinute, clock }, 'client', store))
        const one = new TokenBuckets({ perMinute, clock })
        let [admitted, wouldBe] = [0, 0]
        for (const { wait, count, node, account } of load) {
          clock.advance(wait)
          // All at once, half of them at the other node.
          const waits = await Promise.all(
            Array.from({ length: count }, (_, index) => nodes[(node + index) % 2]!.take(account)),
          )
          admitted += waits.filter((ms) => ms === 0).length
          for (let index = 0; index < count; index++) if (one.take(account) === 0) wouldBe++
          expect(admitted).toBeLessThanOrEqual(wouldBe)
          for (const ms of waits) expect(ms).toBeLessThanOrEqual(61_000)
        }
      },
    ),
    { numRuns },
  )
})

test('busy clients get nearly all of their limit, and few requests cost a commit', async () => {
  const clock = manualClock(START)
  const { store, commits } = slowStore()
  const perMinute = 600
  const nodes = [0, 1].map(() => new SharedBuckets({ perMinute, clock }, 'client', store))
  let admitted = 0
  let asked = 0
  for (let ms = 0; ms < 120_000; ms += 50) {
    for (const node of nodes) {
      asked++
      if ((await node.take('x')) === 0) admitted++
    }
    clock.advance(50)
  }
  // 600 at once and 10 a second for 120 s, less what nodes may hold back.
  expect(asked).toBe(4800)
  expect(admitted).toBeLessThanOrEqual(600 + 1200)
  expect(admitted).toBeGreaterThan(0.9 * (600 + 1200))
  expect(commits.length).toBeLessThan(asked / 4)
})

test('tokens that a node has taken and not used do not come on top of a full bucket', async () => {
  const clock = manualClock(START)
  const { store } = slowStore()
  const perMinute = 600
  const nodes = [0, 1].map(() => new SharedBuckets({ perMinute, clock }, 'client', store))
  const one = new TokenBuckets({ perMinute, clock })
  const load = async (count: number): Promise<readonly [number, number]> => {
    let [admitted, wouldBe] = [0, 0]
    for (let index = 0; index < count; index++) {
      if ((await nodes[0]!.take('x')) === 0) admitted++
      if (one.take('x') === 0) wouldBe++
    }
    return [admitted, wouldBe]
  }
  await load(40) // the node learns to take many at once
  clock.advance(10_000)
  await load(1) // it takes ten for this one
  clock.advance(1_900)
  const [admitted, wouldBe] = await load(700)
  expect(wouldBe).toBe(600)
  expect(admitted).toBeLessThanOrEqual(wouldBe)
  expect(admitted).toBeGreaterThan(560)
})

test('a quiet client loses no tokens to shares, and old counters are removed', async () => {
  const clock = manualClock(START)
  const { store } = slowStore()
  const nodes = [0, 1].map(() => new SharedBuckets({ perMinute: 60, clock }, 'client', store))
  // As fast as the limit allows, at both nodes in turn.
  for (let index = 0; index < 300; index++) {
    expect(await nodes[index % 2]!.take('x')).toBe(0)
    clock.advance(1_000)
  }
  for (let day = 0; day < 4; day++) {
    clock.advance(86_400_000)
    await nodes[0]!.take('x')
  }
  expect((await store.counters('limit rate ')).size).toBeLessThanOrEqual(2)
})
