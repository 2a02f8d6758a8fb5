import { expect } from 'vitest'
import { aesVault } from '../../src/secrets/vault.ts'
import { manualClock, type ManualClock, sequentialIds } from '@skein/base'
import type { ApiEnvironment } from '../../src/api/api-context.ts'
import { createCommit, EditListeners } from '../../src/commit/publish.ts'
import { createFoldCache, type FoldCache } from '../../src/state/fold-cache.ts'
import { waitingLists } from '../../src/api/waiting-lists.ts'
import { createInbox } from '../../src/api/inbox.ts'
import { createThreads } from '../../src/api/threads.ts'
import { createRegistry, type RegistryOptions } from '../../src/definitions/load/registry.ts'
import type { Drain } from '../../src/dispatch/dispatcher.ts'
import { inProcessDispatcher } from '../../src/dispatch/in-process-dispatcher.ts'
import type { RuntimeEvent } from '../../src/contract/event.ts'
import { createLiveBus, type LiveBus } from '../../src/live/live-bus.ts'
import type { Inbox } from '../../src/contract/inbox.ts'
import type { Threads } from '../../src/contract/threads.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import type { Commit } from '../../src/store/commit.ts'
import type { Store } from '../../src/store/store.ts'
import { manualTimers } from '../../src/testing/simulation.ts'

export const START: number = Date.parse('2026-01-01T00:00:00.000Z')

const noGovernor = (): Promise<never> => Promise.reject(new Error('There is no governor here.'))

export interface Harness {
  readonly store: Store
  readonly clock: ManualClock
  readonly live: LiveBus
  readonly dispatcher: ReturnType<typeof inProcessDispatcher>
  readonly environment: ApiEnvironment
  readonly folds: FoldCache
  readonly threads: Threads
  readonly inbox: Inbox
  /** Threads that were drained, in order. */
  readonly drained: string[]
  /** Points of the commits, in order. */
  readonly points: string[]
  readonly signed: { readonly id: string; readonly by: string }[]
  /** Errors of background work that operators are shown. */
  readonly reported: unknown[]
  /** Writes as a drain would. */
  append(threadId: string, ...events: readonly RuntimeEvent[]): Promise<void>
}

export interface HarnessOptions extends Partial<Pick<ApiEnvironment, 'limits'>> {
  readonly definitions: RegistryOptions
  /** What a drain does before it parks. Default: nothing. */
  readonly drain?: (threadId: string, harness: Harness, signal: AbortSignal) => Promise<void>
  /** Called before each commit; may commit something else first. */
  readonly before?: (commit: Commit) => Promise<void> | void
}

/** The API over a memory store, with a drain that only parks. */
export async function createHarness(options: HarnessOptions): Promise<Harness> {
  const { definitions, drain, before, limits } = options
  const store = memoryStore()
  const clock = manualClock(START)
  const dispatcher = inProcessDispatcher({ store, timers: manualTimers(clock) })
  const live = createLiveBus({ store, clock })
  const commit = createCommit({ store, live, dispatcher, edits: new EditListeners() })
  const folds = createFoldCache(store)
  const drained: string[] = []
  const points: string[] = []
  const reported: unknown[] = []
  const signed: { id: string; by: string }[] = []
  const environment: ApiEnvironment = {
    registry: createRegistry(definitions),
    store,
    clock,
    ids: sequentialIds('id'),
    vault: aesVault({ key: new Uint8Array(32).fill(7) }),
    governors: {
      open: noGovernor,
      signGrant: noGovernor,
      recordGrant: noGovernor,
      recordFinding: noGovernor,
      recordResidency: noGovernor,
      undoDecided: noGovernor,
    },
    limits: limits ?? testLimits,
    timers: manualTimers(clock),
    instanceEnv: {},
    async commit(wanted) {
      await before?.(wanted)
      const result = await commit(wanted)
      points.push(wanted.point)
      return result
    },
    onEdit: () => () => {},
    show: (threadId, events) => live.show(threadId, events),
    late: () => {},
    report: (error) => void reported.push(error),
    live,
    dispatcher,
    folds,
  }
  const sign = async ({ id }: { readonly id: string }, by: string): Promise<string> => {
    signed.push({ id, by })
    return `token of ${by}`
  }
  const harness: Harness = {
    store,
    clock,
    live,
    dispatcher,
    environment,
    folds,
    threads: createThreads(environment),
    inbox: { ...createInbox(environment, sign), ...waitingLists(environment) },
    drained,
    points,
    signed,
    reported,
    async append(id, ...append) {
      await commit({ point: 'test', threads: [{ id, append }] })
    },
  }
  const park: Drain = async (id, signal) => {
    drained.push(id)
    await drain?.(id, harness, signal)
    const head = await store.head(id)
    if (!head) return
    await commit({
      point: 'park',
      threads: [{ id, expectSeq: head.seq, wake: { exactly: null } }],
    })
  }
  await dispatcher.start(park)
  return harness
}

export const testLimits: ApiEnvironment['limits'] = {
  modelAttempts: 4,
  modelBackoffMs: 1000,
  modelIdleMs: 60_000,
  modelMs: 600_000,
  leaseMs: 30_000,
  drainAttempts: 5,
  depth: 8,
  sameErrors: 8,
  maxSteps: 250,
  maxHandoffs: 10,
  hookTimeoutMs: 1000,
  maxFileBytes: 1000,
  maxImageBytes: 1000,
  maxMediaBytes: 1000,
  maxMediaFiles: 20,
  maxMessageBytes: 2000,
  maxToolCalls: 128,
  maxToolResultBytes: 256 * 1024,
  stopGraceMs: 100,
  interruptTtlMs: 1000,
  variablesTtlMs: 1000,
  loopBlockedMs: Infinity,
}

export const coded = (code: string): Error => expect.objectContaining({ code }) as Error

/** A promise that is settled from outside. */
export function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {}
  const promise = new Promise<void>((settle) => (resolve = settle))
  return { promise, resolve }
}
