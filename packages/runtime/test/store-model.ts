import fc from 'fast-check'
import { expect } from 'vitest'
import { isStoreError } from '../src/store/store-error.ts'
import type { Commit, ThreadChange } from '../src/store/commit.ts'
import type { Store } from '../src/store/store.ts'
import { newThread, valueSet } from '../src/testing/contract.ts'

const IDS = ['a', 'b', 'c', 'd', 'e', 'f']
const HASHES = ['1', '2', '3'].map((digit) => digit.repeat(64))

/** Everything a store holds, as simply as it can be said. */
interface Model {
  threads: Map<string, ModelThread>
  blobs: Map<string, number>
  audit: { tree: string; requestId: string; seq: number; line: string }[]
  spent: Set<string>
}

interface ModelThread {
  clientId: string | null
  title: string | null
  lifecycle: string
  tokens: number
  attempts: number
  epoch: number
  wakeAt: number | null
  updatedAt: number
  values: unknown[]
}

/** Changes a copy, one line of the contract after the other; the code of a refusal leaves the model as it was. */
function modelCommit(model: Model, commit: Commit): string {
  const next = structuredClone(model)
  for (const change of commit.threads) {
    const refusal = modelConditions(model, next, change)
    if (refusal) return refusal
  }
  for (const { jti } of commit.spent ?? []) {
    if (next.spent.has(jti)) return 'TOKEN_SPENT'
    next.spent.add(jti)
  }
  for (const change of commit.threads) modelChange(next, change)
  for (const line of commit.audit ?? []) {
    if (next.audit.some((it) => it.requestId === line.requestId && it.seq === line.seq))
      return 'STATE_CONFLICT'
    next.audit.push(line)
  }
  for (const { hash, bytes } of commit.blobs ?? [])
    if (!next.blobs.has(hash)) next.blobs.set(hash, bytes[0] ?? 0)
  Object.assign(model, next)
  return 'ok'
}

function modelConditions(before: Model, next: Model, change: ThreadChange): string | undefined {
  const { id, create, fence, expectSeq, mustBeLive } = change
  if (create) {
    if (next.threads.has(id)) return 'THREAD_EXISTS'
    const { clientId, createdAt } = create
    const rest = { tokens: 0, attempts: 0, epoch: 0, wakeAt: null, values: [] }
    const fresh = { clientId, title: null, lifecycle: 'idle', updatedAt: createdAt, ...rest }
    if (fence !== undefined && fence !== 0) return 'FENCED'
    if (expectSeq !== undefined && expectSeq !== 0) return 'LOG_MOVED'
    for (const it of next.threads.values())
      if (clientId !== null && it.clientId === clientId) return 'CLIENT_ID_TAKEN'
    next.threads.set(id, fresh)
    return undefined
  }
  const thread = before.threads.get(id) ?? next.threads.get(id)
  if (!thread) return 'THREAD_NOT_FOUND'
  if (fence !== undefined && fence !== thread.epoch) return 'FENCED'
  if (mustBeLive && ['terminated', 'erased'].includes(thread.lifecycle)) return 'THREAD_TERMINATED'
  if (expectSeq !== undefined && expectSeq !== thread.values.length) return 'LOG_MOVED'
  return undefined
}

function modelChange(model: Model, change: ThreadChange): void {
  const thread = model.threads.get(change.id)
  if (!thread) return
  for (const event of change.append ?? []) {
    thread.values.push('value' in event ? event.value : null)
    thread.updatedAt = Math.max(thread.updatedAt, Date.parse(event.at))
  }
  Object.assign(thread, change.head)
  if (change.raisesEpoch) thread.epoch++
  if (!change.wake) return
  if ('exactly' in change.wake) thread.wakeAt = change.wake.exactly
  else thread.wakeAt = Math.min(thread.wakeAt ?? Infinity, change.wake.by)
}

/** What a store says about everything the model knows. */
async function contentsOf(store: Store): Promise<unknown> {
  // A head by its id may be remembered, while a list is read from the table.
  const listed = await store.list({ limit: 1000 })
  for (const head of listed) expect(await store.head(head.id)).toEqual(head)
  const threads = await Promise.all(
    IDS.map(async (id) => {
      const head = await store.head(id)
      if (!head) return [id]
      const { clientId, title, lifecycle, tokens, attempts, epoch, wakeAt, updatedAt, seq } = head
      const events = await store.events(id)
      const values = events.map(({ event }) => ('value' in event ? event.value : null))
      const numbers = events.map((event) => event.seq)
      expect(numbers).toEqual(events.map((_, index) => index + 1))
      expect(seq).toBe(events.length)
      const fields = { clientId, title, lifecycle, tokens, attempts, epoch, wakeAt, updatedAt }
      return [id, { ...fields, values }]
    }),
  )
  const blobs = await Promise.all(HASHES.map(async (hash) => (await store.blob(hash))?.[0] ?? null))
  const audit = await Promise.all(IDS.map((tree) => store.audit(tree)))
  const times = [await store.due(50, 10), await store.nextWake(), await store.nextWake(50)]
  const usage = await Promise.all(IDS.map((id) => store.treeUsage(id)))
  return { threads, blobs, audit, times, usage }
}

function contentsOfModel(model: Model): unknown {
  const threads = IDS.map((id) => (model.threads.has(id) ? [id, model.threads.get(id)] : [id]))
  const blobs = HASHES.map((hash) => model.blobs.get(hash) ?? null)
  const audit = IDS.map((tree) =>
    model.audit.filter((it) => it.tree === tree).map(({ line }, index) => ({ index, line })),
  )
  const wakes = [...model.threads]
    .flatMap(([id, { wakeAt }]) => (wakeAt === null ? [] : [{ id, wakeAt }]))
    .toSorted((a, b) => a.wakeAt - b.wakeAt || (a.id < b.id ? -1 : 1))
  const due = wakes.filter(({ wakeAt }) => wakeAt <= 50).map(({ id }) => id)
  const times = [due, wakes[0]?.wakeAt, wakes.find(({ wakeAt }) => wakeAt > 50)?.wakeAt]
  const usage = IDS.map((id) => ({
    tokens: model.threads.get(id)?.tokens ?? 0,
    costUsd: 0,
    unpriced: 0,
    waiting: 0,
  }))
  return { threads, blobs, audit, times, usage }
}

const small = fc.integer({ min: 0, max: 3 })
const time = fc.integer({ min: 0, max: 100 })
const optional = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(value, { nil: undefined, freq: 2 })

const seldom = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value })

const changeArbitrary = fc
  .record({
    id: fc.constantFrom('a', 'a', 'b', 'b', ...IDS),
    creates: fc.integer({ min: 0, max: 9 }),
    clientId: fc.constantFrom(null, 'x', 'y'),
    fence: seldom(small),
    expectSeq: seldom(small),
    mustBeLive: optional(fc.constant(true)),
    append: optional(fc.array(fc.tuple(fc.jsonValue({ maxDepth: 2 }), time), { maxLength: 3 })),
    head: optional(
      fc.record(
        {
          title: fc.constantFrom(null, 'one', 'two'),
          lifecycle: fc.constantFrom('idle', 'terminated', 'erased'),
          tokens: small,
          attempts: small,
        },
        { requiredKeys: [] },
      ),
    ),
    raisesEpoch: optional(fc.boolean()),
    wake: optional(
      fc.oneof(
        fc.record({ by: time }),
        fc.record({ exactly: fc.option(time, { nil: null, freq: 2 }) }),
      ),
    ),
  })
  .map(({ creates, clientId, append, id, ...rest }): ThreadChange => {
    const events = append?.map(([value, at]) => valueSet(value, at))
    const create =
      creates < (id < 'c' ? 1 : 6) ? newThread(id, { clientId, createdAt: 10 }) : undefined
    const all = { id, create, append: events, ...rest }
    const defined = Object.entries(all).filter(([, value]) => value !== undefined)
    return Object.fromEntries(defined) as unknown as ThreadChange
  })

const commitArbitrary: fc.Arbitrary<Commit> = fc.record({
  point: fc.constant('model'),
  threads: fc.array(changeArbitrary, { maxLength: 3 }),
  blobs: fc.array(
    fc.record({
      hash: fc.constantFrom(...HASHES),
      bytes: fc.uint8Array({ minLength: 1, maxLength: 4 }),
    }),
    { maxLength: 2 },
  ),
  audit: fc.array(
    fc.record({
      tree: fc.constantFrom(...IDS),
      requestId: fc.constantFrom('r', 's'),
      seq: fc.integer({ min: 0, max: 15 }),
      line: fc.string(),
    }),
    { maxLength: 2 },
  ),
  spent: fc.array(
    fc.record({ jti: fc.integer({ min: 0, max: 20 }).map(String), exp: fc.constant(1) }),
    { maxLength: 1 },
  ),
})

type Step = { readonly commit: Commit } | { readonly claim: string }
const stepArbitrary: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ commit: commitArbitrary }) },
  { weight: 1, arbitrary: fc.record({ claim: fc.constantFrom(...IDS) }) },
)

/** Threads exist from the start in most runs, or nearly all commits would be refused for want of one. */
const FIRST: Commit = { point: 'model', threads: ['a', 'b'].map((id) => creation(id)) }

function creation(id: string): ThreadChange {
  return { id, create: newThread(id, { createdAt: 10 }) }
}

function modelStep(model: Model, step: Step): string {
  if ('commit' in step) return modelCommit(model, step.commit)
  const thread = model.threads.get(step.claim)
  if (thread) thread.epoch++
  return 'ok'
}

async function storeStep(store: Store, step: Step): Promise<string> {
  try {
    if ('commit' in step) await store.commit(step.commit)
    else await store.claim(step.claim, { owner: 'one', leaseMs: 1_000 })
    return 'ok'
  } catch (error) {
    if (isStoreError(error)) return error.code
    throw error
  }
}

/**
 * Checks that a store does what a simple model does, refusals included, whether commits come one after the other
 * or together. Returns how often each answer was met.
 */
export async function expectModel(
  open: () => Store | Promise<Store>,
  numRuns: number,
): Promise<ReadonlyMap<string, number>> {
  const answers = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(
      fc.array(stepArbitrary, { minLength: 1, maxLength: 20 }),
      fc.boolean(),
      async (steps, areTogether) => {
        const store = await open()
        const model: Model = { threads: new Map(), blobs: new Map(), audit: [], spent: new Set() }
        const all = [{ commit: FIRST }, ...steps]
        const expected: string[] = []
        if (areTogether) {
          // Asked for at once, they still happen one after the other.
          expected.push(...all.map((step) => modelStep(model, step)))
          expect(await Promise.all(all.map((step) => storeStep(store, step)))).toEqual(expected)
        } else
          for (const step of all) {
            expected.push(modelStep(model, step))
            expect(await storeStep(store, step)).toBe(expected.at(-1))
            expect(await contentsOf(store)).toEqual(contentsOfModel(model))
          }
        expect(await contentsOf(store)).toEqual(contentsOfModel(model))
        for (const answer of expected) answers.set(answer, (answers.get(answer) ?? 0) + 1)
        await store.close()
      },
    ),
    { numRuns, seed: 29 },
  )
  return answers
}

/** The answers that a run of the model has to meet: a model that never refuses proves little. */
export const MODEL_ANSWERS: readonly string[] = [
  'ok',
  'THREAD_EXISTS',
  'THREAD_NOT_FOUND',
  'FENCED',
  'LOG_MOVED',
  'THREAD_TERMINATED',
  'CLIENT_ID_TAKEN',
  'TOKEN_SPENT',
  'STATE_CONFLICT',
]
