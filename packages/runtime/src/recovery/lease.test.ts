import { manualClock } from '@skein/base'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryStore } from '../store/memory-store.ts'
import type { Store } from '../store/store.ts'
import { addThreads } from '../testing/contract.ts'
import { manualTimers } from '../testing/simulation.ts'
import { createLeaseKeeper, type KeptLease } from './lease.ts'

const LEASE_MS = 30_000

async function stage(wrap: (store: Store) => Store = (store) => store) {
  const clock = manualClock(1_000_000)
  const store = memoryStore({ clock })
  await addThreads(store, 'a', 'b')
  const timers = manualTimers(clock)
  const keeper = createLeaseKeeper({ store: wrap(store), timers, owner: 'me', leaseMs: LEASE_MS })
  const keep = async (id: string): Promise<KeptLease> => {
    const lease = await keeper.claim(id, new AbortController().signal)
    if (!lease || 'heldBy' in lease) throw new Error(`${id} is held`)
    return lease
  }
  return { clock, store, timers, keeper, keep }
}

test('leases are renewed together after each third, for as long as drains run', async () => {
  const asked: string[][] = []
  const { store, timers, keep } = await stage((inner) => ({
    ...inner,
    claim: (id, options) => inner.claim(id, options),
    release: (owner, ids) => inner.release(owner, ids),
    renew: (ids, options) => {
      asked.push([...ids])
      return inner.renew(ids, options)
    },
  }))
  const a = await keep('a')
  await timers.advance(5_000)
  const b = await keep('b')
  await timers.advance(200_000)
  expect(asked.length).toBe(20)
  expect(asked.every((ids) => ids.join() === 'a,b')).toBe(true)
  expect([a.signal.aborted, b.signal.aborted]).toEqual([false, false])
  expect(await store.claim('a', { owner: 'other', leaseMs: 1 })).toMatchObject({ heldBy: 'me' })
  a.end()
  await timers.advance(10_000)
  expect(asked.at(-1)).toEqual(['b'])
  b.end()
  expect(timers.pending()).toEqual([])
})

test('a drain whose lease cannot be renewed is aborted after two thirds of it, before it ends', async () => {
  const { store, timers, keep, clock } = await stage((inner) => ({
    ...inner,
    claim: (id, options) => inner.claim(id, options),
    release: (owner, ids) => inner.release(owner, ids),
    renew: () => Promise.reject(new Error('no route')),
  }))
  const { signal, end } = await keep('a')
  await timers.advance(LEASE_MS * (2 / 3) - 1)
  expect(signal.aborted).toBe(false)
  await timers.advance(1)
  expect(signal.reason).toMatchObject({ code: 'LEASE_LOST' })
  const held = await store.claim('a', { owner: 'other', leaseMs: 1 })
  expect(held).toMatchObject({ heldBy: 'me', leftMs: LEASE_MS / 3 })
  end()
  clock.advance(LEASE_MS / 3)
  expect(await store.claim('a', { owner: 'other', leaseMs: 1 })).toMatchObject({ epoch: 2 })
})

test('a drain whose thread was taken is aborted with the next renewal', async () => {
  const { store, timers, keep, clock } = await stage()
  const a = await keep('a')
  const b = await keep('b')
  clock.advance(LEASE_MS + 1) // the process slept; its timers are late
  await store.claim('a', { owner: 'other', leaseMs: LEASE_MS })
  await timers.advance(0)
  expect(a.signal.aborted).toBe(true)
  a.end()
  b.end()
  expect(timers.pending()).toEqual([])
})

test('law: whatever the store does, an owner that has not aborted holds the lease', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          ms: fc.integer({ min: 1, max: 15_000 }),
          renewal: fc.constantFrom('done', 'done', 'refused', 'lost', 'late' as const),
        }),
        { minLength: 1, maxLength: 20 },
      ),
      async (steps) => {
        let renewal: string = 'done'
        const { store, timers, keep } = await stage((inner) => ({
          ...inner,
          claim: (id, options) => inner.claim(id, options),
          release: (owner, ids) => inner.release(owner, ids),
          renew: async (ids, options) => {
            if (renewal === 'refused') throw new Error('no route')
            const renewed = await inner.renew(ids, options)
            if (renewal === 'lost') throw new Error('the answer was lost')
            if (renewal === 'late') await new Promise<void>((resolve) => timers.set(9_000, resolve))
            return renewed
          },
        }))
        const { signal, end } = await keep('a')
        for (const step of steps) {
          renewal = step.renewal
          await timers.advance(step.ms)
          const taken = await store.claim('a', { owner: 'other', leaseMs: 1 })
          if (!signal.aborted) expect(taken).toMatchObject({ heldBy: 'me' })
          if (taken && 'epoch' in taken) break
        }
        end()
      },
    ),
    { numRuns: process.env['SKEIN_DEEP'] ? 5_000 : 300, seed: 41 },
  )
})
