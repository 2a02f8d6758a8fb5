import { calls, says, scripted } from '@skein/ai/testing'
import {
  createRuntime,
  defineAgent,
  definePrompt,
  defineTool,
  type EmbeddedRuntime,
  memoryGovernanceKeys,
  type NodeLink,
  type RuntimeEvent,
  type Store,
} from '@skein/runtime'
import { expect } from 'vitest'
import { z } from 'zod'
import { SECRET, until } from './cluster.ts'

/** What two nodes need to work as one. */
export interface TwoNodes {
  /** Opens the store for a node. */
  open(): Promise<Store>
  link(): NodeLink
}

export type Landing =
  | 'before the other node takes over'
  | 'after the call was settled'
  /** The node has not noticed that it lost the lease, so it tries to store the result as if it had it. */
  | 'after the call was settled, unnoticed'

/**
 * Runs a payment on one node, which then loses its lease while the payment runs: it can renew and claim nothing any more,
 * but still reach the store. Another node continues the thread. The payment lands before or after that node has settled
 * it. Returns what the log says in the end; the ledger outside has one payment.
 */
export async function lostLease(
  { open, link }: TwoNodes,
  {
    risk,
    landing,
  }: { readonly risk: 'write_low_risk' | 'write_high_risk'; readonly landing: Landing },
): Promise<{ readonly events: readonly RuntimeEvent[]; readonly shown: string }> {
  const ledger: string[] = []
  let land!: () => void
  const landed = new Promise<void>((resolve) => (land = resolve))
  let started = 0
  let signal: AbortSignal | undefined
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    args: z.object({}),
    risk,
    rollback: 'impossible',
    execute: async (_: unknown, __: unknown, context: { signal: AbortSignal }) => {
      signal = context.signal
      started++
      await landed
      ledger.push('paid')
      return 'paid, number 7'
    },
  } as never)
  const model = scripted(({ messages }) => (messages.length === 1 ? calls('pay', {}) : says('Ok.')))
  const prompt = definePrompt({ name: 'p', prompt: 'P.', model, tools: [pay] })
  const agents = [defineAgent({ name: 'a', sideA: { prompt } })]
  const keys = await memoryGovernanceKeys()
  const secretKey = Buffer.alloc(32, 7).toString('base64')
  let isCut = false
  const start = async (owner: string, store: Store): Promise<EmbeddedRuntime> => {
    const runtime = await createRuntime({
      agents,
      store,
      owner,
      keys,
      secretKey,
      limits: { leaseMs: 450, stopGraceMs: 50 },
      nodes: { link: link(), address: `http://${owner}.test`, secret: SECRET, fetch: noFetch },
      onError: () => {},
    })
    await runtime.start()
    return runtime
  }
  const one = await start(
    'one',
    withoutLeases(await open(), { isCut: () => isCut, isNoticed: !landing.endsWith('unnoticed') }),
  )
  const two = await start('two', await open())
  try {
    const { id } = await one.threads.create({ agent: 'a' })
    await one.threads.send(id, 'Pay.')
    if (risk === 'write_high_risk') {
      await until(async () => (await one.inbox.page()).waiting.length === 1)
      const [asked] = (await one.inbox.page()).waiting
      await one.inbox.approve({ ...asked!, by: 'ann', digest: asked!.request!.digest })
    }
    await until(() => started === 1)
    const workedOn = (await two.store.head(id))?.lease?.owner
    isCut = workedOn === 'one'
    // If the other node has taken the thread first, there is nothing to lose.
    expect(workedOn).toBe('one')
    const events = async (): Promise<readonly RuntimeEvent[]> =>
      (await two.threads.events(id)).map(({ event }) => event)
    const has = (type: RuntimeEvent['type'], kind?: string) => async (): Promise<boolean> =>
      (await events()).some(
        (event) =>
          event.type === type &&
          (kind === undefined ||
            (event.type === 'interrupt_opened' && event.interrupt.kind === kind)),
      )
    const settled =
      risk === 'write_high_risk' ? has('interrupt_opened', 'in_doubt') : has('tool_execution_end')
    if (landing.startsWith('after the call was settled')) await until(settled)
    else await until(() => signal?.aborted === true, { what: 'the end of the lease' })
    land()
    await until(has('late_result'))
    await until(has('session_end'))
    expect((await two.inbox.page()).waiting).toEqual([])
    await two.threads.run(id, 'And now?')
    expect(ledger).toEqual(['paid'])
    expect(started).toBe(1)
    const shown = JSON.stringify(model.requests.at(-1)?.messages)
    return { events: await events(), shown }
  } finally {
    land()
    await two.stop({ graceMs: 0 })
    await one.stop({ graceMs: 0 })
  }
}

const noFetch = (async () => {
  throw new TypeError('No node is reached by HTTP here.')
}) as typeof fetch

/** A store as a node sees it that gets no more leases; if that is not noticed, its renewals seem to succeed. */
function withoutLeases(
  store: Store,
  { isCut, isNoticed }: { readonly isCut: () => boolean; readonly isNoticed: boolean },
): Store {
  const answers: Readonly<Record<string, (ids: unknown) => unknown>> = {
    renew: (ids) => (isNoticed ? [] : ids),
    claim: () => undefined,
    release: () => undefined,
  }
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      if (typeof name === 'string' && name in answers)
        return async (...given: unknown[]) =>
          isCut() ? answers[name]!(given[0]) : (member.apply(target, given) as unknown)
      return member.bind(target) as unknown
    },
  })
}
