import type { ClaimOptions, Store } from '../store/store.ts'
import { addThreads, claimed, newThread, refused, same, valueSet } from './contract.ts'

/** A case about leases; `pass` lets time pass by the clock of the store. */
type LeaseCase = (store: Store, pass: (ms: number) => void | Promise<void>) => Promise<void>

/** The length of leases: short, because some stores have a real clock and the test waits for the end of a lease. */
const LEASE_MS = 300

function by(owner: string): ClaimOptions {
  return { owner, leaseMs: LEASE_MS }
}

async function leaseOf(store: Store, id = 't') {
  return (await store.head(id))?.lease
}

/** The tests of claims and leases that every store has to pass, with any number of processes. */
export const leaseCases: Readonly<Record<string, LeaseCase>> = {
  'a claimed thread is held: another owner learns by whom and for how long': async (store) => {
    await addThreads(store, 't')
    const claim = await store.claim('t', by('one'))
    if (!claim || 'heldBy' in claim) throw new Error('Expected the thread to be free.')
    const { until, ...lease } = claim.head.lease ?? { until: 0 }
    same(lease, { owner: 'one', deaths: 0, survived: 0, isQuarantined: false }, 'the lease')
    const refusal = await store.claim('t', by('two'))
    if (!refusal || !('heldBy' in refusal)) throw new Error('Expected the thread to be held.')
    same([refusal.heldBy, refusal.until], ['one', until], 'the holder')
    same(
      refusal.leftMs > 0 && refusal.leftMs <= LEASE_MS,
      true,
      'whether the rest is within the lease',
    )
    same((await store.head('t'))?.epoch, 1, 'the epoch: nothing was changed')
    await store.commit({ point: 'test', threads: [{ id: 't', fence: 1, append: [valueSet(1)] }] })
  },
  'a lease keeps the address of its owner until it is released or taken': async (store, pass) => {
    await addThreads(store, 't')
    const address = 'http://10.0.0.4:3000'
    const claim = await store.claim('t', { ...by('one'), address })
    same(claim && 'head' in claim && claim.head.lease?.address, address, 'the address')
    await store.commit({ point: 'test', threads: [{ id: 't', fence: 1, lease: 'cleared' }] })
    await store.renew(['t'], by('one'))
    same((await leaseOf(store))?.address, address, 'the address after progress and a renewal')
    await pass(LEASE_MS + 50)
    await store.claim('t', by('two'))
    same((await leaseOf(store))?.address, undefined, 'the address of an owner that gave none')
    await store.release('two', ['t'])
    await store.claim('t', { ...by('one'), address })
    await store.release('one')
    same(await leaseOf(store), null, 'the lease after its release')
    await store.claim('t', by('two'))
    same((await leaseOf(store))?.address, undefined, 'the address after the release')
  },
  'of owners that claim concurrently one gets the thread': async (store) => {
    await addThreads(store, 't')
    const owners = Array.from({ length: 8 }, (_, index) => `owner ${index}`)
    const answers = await Promise.all(owners.map((owner) => store.claim('t', by(owner))))
    const won = answers.flatMap((answer) => (answer && 'epoch' in answer ? [answer] : []))
    same(won.length, 1, 'the number of winners')
    same([(await store.head('t'))?.epoch, won[0]?.epoch], [1, 1], 'the epoch')
    const holders = answers.flatMap((answer) => (answer && 'heldBy' in answer ? answer.heldBy : []))
    same(
      new Set(holders).size === 1 && holders[0] === won[0]?.head.lease?.owner,
      true,
      'the answers to the others',
    )
  },
  'a lease that has ended can be taken, and each time counts as a death': async (store, pass) => {
    await addThreads(store, 't')
    await store.claim('t', by('one'))
    await pass(LEASE_MS + 50)
    const second = await store.claim('t', by('two'))
    same(second && 'epoch' in second && second.epoch, 2, 'the epoch of the second owner')
    const write = { id: 't', fence: 1, append: [valueSet(1)] }
    await refused(store.commit({ point: 'test', threads: [write] }), 'FENCED')
    same((await leaseOf(store))?.deaths, 1, 'the deaths')
    await pass(LEASE_MS + 50)
    await store.claim('t', by('three'))
    const { lease, attempts } = (await store.head('t')) ?? {}
    same([lease?.owner, lease?.deaths, attempts], ['three', 2, 0], 'no strike is counted')
  },
  'only the death of an owner whose thread was in quarantine is a strike': async (store, pass) => {
    await addThreads(store, 't')
    await store.claim('t', by('one'))
    const quarantine = (lease: 'quarantined' | 'survived', fence: number) =>
      store.commit({ point: 'test', threads: [{ id: 't', fence, lease }] })
    await quarantine('quarantined', 1)
    same((await leaseOf(store))?.isQuarantined, true, 'whether it is in quarantine')
    await pass(LEASE_MS + 50)
    await store.claim('t', by('two'))
    const after = await store.head('t')
    same([after?.attempts, after?.lease?.isQuarantined], [1, false], 'the strike')
    await quarantine('quarantined', 2)
    await quarantine('survived', 2)
    await pass(LEASE_MS + 50)
    await store.claim('t', by('three'))
    const { attempts, lease } = (await store.head('t')) ?? {}
    same([attempts, lease?.deaths, lease?.survived], [1, 2, 1], 'after a trial that was survived')
  },
  'an owner may claim its own thread again; that is no death': async (store) => {
    await addThreads(store, 't')
    await claimed(store, 't')
    await store.commit({ point: 'test', threads: [{ id: 't', fence: 1, lease: 'quarantined' }] })
    const again = await claimed(store, 't')
    same([again.epoch, again.head.attempts, again.head.lease?.deaths], [2, 0, 0], 'the claim')
  },
  'a lease lasts as long as it is renewed, and only its owner renews it': async (store, pass) => {
    await addThreads(store, 't', 'u', 'v')
    await store.claim('t', by('one'))
    await store.claim('u', by('two'))
    for (let i = 0; i < 4; i++) {
      await pass(LEASE_MS / 2)
      same(await store.renew(['t', 'u', 'v', 'none'], by('one')), ['t'], 'what one still holds')
    }
    const refusal = await store.claim('t', by('three'))
    same(refusal && 'heldBy' in refusal && refusal.heldBy, 'one', 'the holder of t')
    const secondClaim = await store.claim('u', by('three'))
    same(
      secondClaim && 'epoch' in secondClaim && secondClaim.epoch,
      2,
      'the epoch of u, which was not renewed',
    )
    same(await store.renew(['u'], by('two')), [], 'what two still holds')
    same((await store.head('t'))?.epoch, 1, 'the epoch of t')
  },
  'a lease that has ended can be renewed while no other owner has taken it': async (
    store,
    pass,
  ) => {
    await addThreads(store, 't')
    await store.claim('t', by('one'))
    await pass(LEASE_MS + 50)
    same(await store.renew(['t'], by('one')), ['t'], 'what is renewed')
    const refusal = await store.claim('t', by('two'))
    same(refusal && 'heldBy' in refusal && refusal.heldBy, 'one', 'the holder')
  },
  'a lease that was released can be taken immediately, and is no death': async (store) => {
    await addThreads(store, 't', 'u', 'v')
    for (const id of ['t', 'u']) await store.claim(id, by('one'))
    await store.claim('v', by('two'))
    await store.release('one', ['t', 'v'])
    const owners = async () => {
      const heads = await Promise.all(['t', 'u', 'v'].map((id) => store.head(id)))
      return heads.map((head) => head?.lease?.owner ?? null)
    }
    same(await owners(), [null, 'one', 'two'], 'the owners: what is held by others stays')
    await store.release('one')
    same(await owners(), [null, null, 'two'], 'the owners after all was released')
    const next = await store.claim('t', by('three'))
    same(next && 'head' in next && next.head.lease?.deaths, 0, 'the deaths')
    const write = { id: 't', fence: 1, append: [valueSet(1)] }
    await refused(store.commit({ point: 'test', threads: [write] }), 'FENCED')
  },
  'a commit can release the lease or clear the thread, and a refused one does neither': async (
    store,
    pass,
  ) => {
    await addThreads(store, 't')
    await store.claim('t', by('one'))
    await pass(LEASE_MS + 50)
    await store.claim('t', by('two'))
    const change = (lease: 'cleared' | 'released', fence: number) =>
      store.commit({ point: 'test', threads: [{ id: 't', fence, lease }] })
    await refused(change('released', 1), 'FENCED')
    same((await leaseOf(store))?.deaths, 1, 'the deaths after a refusal')
    await change('cleared', 2)
    const { owner, deaths } = (await leaseOf(store)) ?? {}
    same([owner, deaths], ['two', 0], 'the lease after progress')
    await change('released', 2)
    same(await leaseOf(store), null, 'the lease after its release')
    await change('cleared', 2)
    same(await leaseOf(store), null, 'the lease: what is not held cannot be cleared')
  },
  'tenants take turns among the threads that are due': async (store) => {
    const add = (tenant: string, id: string, at: number) =>
      store.commit({
        point: 'test',
        threads: [{ id, create: newThread(id, { tenant }), wake: { by: at } }],
      })
    for (let i = 0; i < 5; i++) await add('a', `a${i}`, i)
    await add('b', 'b0', 50)
    await add('b', 'b1', 51)
    await add('c', 'c0', 40)
    same(await store.due(99, 5), ['a0', 'c0', 'b0', 'a1', 'b1'], 'the first five')
    const all = ['a0', 'c0', 'b0', 'a1', 'b1', 'a2', 'a3', 'a4']
    same(await store.due(99, Infinity), all, 'all of them')
    same(await store.due(45, 2), ['a0', 'c0'], 'those due at 45')
  },
}
