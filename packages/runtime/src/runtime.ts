import { join } from 'node:path'
import { systemClock, timeOrderedIds } from '@skein/base'
import { createApiContext, type ApiContext } from './api/api-context.ts'
import { eraseThread } from './api/erase-thread.ts'
import { createInbox } from './api/inbox.ts'
import { reportLate } from './api/late-result.ts'
import { removeThread } from './api/remove-thread.ts'
import { threadInfos } from './api/thread-info.ts'
import { createThreads } from './api/threads.ts'
import { userValuesApi } from './api/user-values-api.ts'
import { waitingLists } from './api/waiting-lists.ts'
import { withState } from './api/with-state.ts'
import { Outage } from './commit/outage.ts'
import { EditListeners, createCommit } from './commit/publish.ts'
import type { KernelEnvironment } from './context/environment.ts'
import { RuntimeError } from './contract/error.ts'
import { defaultLimits, type RuntimeLimits } from './contract/limits.ts'
import type { Runtime } from './contract/runtime-api.ts'
import type { ThreadState } from './contract/thread-state.ts'
import { upcastingStore } from './store/upcast.ts'
import { noPrice, unpriced } from './definitions/load/check-budgets.ts'
import { createRegistry } from './definitions/load/registry.ts'
import {
  replaceableRegistry,
  type ReplaceableRegistry,
} from './definitions/load/replaceable-registry.ts'
import type { Registry } from './definitions/resolved.ts'
import {
  SHARED_LEASE_MS,
  idle,
  steadyClock,
  systemTimers,
  type Dispatcher,
  type Timers,
} from './dispatch/dispatcher.ts'
import { inProcessDispatcher } from './dispatch/in-process-dispatcher.ts'
import { createApprovalSigner } from './governance/approval-signer.ts'
import { AuditReader } from './governance/audit-export.ts'
import { createSessionGovernors } from './governance/session-governors.ts'
import { Retention, retentionReport } from './limits/retention.ts'
import { SpendingLimits } from './limits/spending.ts'
import { createLiveBus } from './live/live-bus.ts'
import { createDrain } from './loop/drain.ts'
import { openKeys } from './open-keys.ts'
import { createLeaseKeeper } from './recovery/lease.ts'
import { createTrialGate } from './recovery/trial-gate.ts'
import type { RuntimeOptions } from './runtime-options.ts'
import { createFoldCache } from './state/fold-cache.ts'
import { memoryStore } from './store/memory-store.ts'
import { sqliteStore } from './store/sqlite/sqlite-store.ts'
import type { Store } from './store/store.ts'
import { guardedLogger, loggedError } from './telemetry/logger.ts'
import { Telemetry } from './telemetry/telemetry.ts'
import { createLoopWatch, type LoopWatch } from './telemetry/watchdog.ts'

/** A runtime that also gives access to its store, and whose definitions can be replaced while it runs. */
export interface EmbeddedRuntime extends Runtime {
  readonly store: Store
  /** Replaces the definitions. The new definitions are used from the next step of each thread on. */
  replaceRegistry(registry: Registry): void
}

/**
 * Creates a runtime. It begins to work when `start` is called.
 *
 *     const secretKey = process.env.SKEIN_SECRET_KEY // openssl rand -base64 32
 *     const runtime = await createRuntime({ agents: [support], folder: '.skein', secretKey })
 *     await runtime.start()
 *     const thread = await runtime.threads.create({ agent: 'support' })
 *     const { text } = await runtime.threads.run(thread.id, 'Where is my order?')
 */
export async function createRuntime(options: RuntimeOptions): Promise<EmbeddedRuntime> {
  const { folder, id = 'skein' } = options
  // A caller that passes its own timers, e.g. a simulation, also controls the clock.
  const clock = options.timers ? (options.clock ?? systemClock) : steadyClock(options.clock)
  const timers = options.timers ?? systemTimers(clock)
  const registry = registryFrom(options)
  const openStore = (): Store =>
    folder === undefined ? memoryStore() : sqliteStore({ path: join(folder, 'skein.db') })
  const store = upcastingStore(options.store ?? openStore())
  const nodes = options.nodes && (await import('./nodes/nodes.ts'))
  const { vault, keys } = await openKeys(options, { store, timers, nodes }).catch(
    async (error: unknown) => {
      if (!options.store) await store.close()
      throw error
    },
  )
  const ids = options.ids ?? timeOrderedIds({ clock })
  const { maxConcurrent } = options
  const logger = options.logger && guardedLogger(options.logger)
  const outage = new Outage()
  const onError = (error: unknown, threadId?: string): void => {
    outage.note(error)
    logger?.error({ threadId, err: loggedError(error) }, 'background work failed')
    options.onError?.(error, threadId)
  }
  const dispatcherOf = options.dispatcher ?? inProcessDispatcher
  const sweepMs = nodes?.SWEEP_MS
  const dispatcher = dispatcherOf({ store, timers, maxConcurrent, onError, sweepMs })
  const { leaseMs = nodes ? SHARED_LEASE_MS : defaultLimits.leaseMs } = dispatcher
  const limits = { ...defaultLimits, leaseMs, ...options.limits }
  const watchdog = watchdogOf({ ...options, logger }, limits)
  const live = createLiveBus({ store, clock })
  const edits = new EditListeners()
  const folds = createFoldCache(store)
  const { owner = crypto.randomUUID() } = options
  const common = { owner, leaseMs: limits.leaseMs, store, live, dispatcher, edits, folds, timers }
  // `nodes` is the module of that name, loaded above only if `options.nodes` is set, so the option exists here.
  const node =
    nodes && new nodes.RuntimeNode({ ...common, options: options.nodes!, report: onError })
  const signer = createApprovalSigner({ id, keys, clock, issuers: options.issuers })
  const { policy, governorLimits } = options
  const spending = spendingOf(options, { registry, store, timers, limits, report: onError })
  const environment: KernelEnvironment = {
    registry,
    pin: options.pin,
    store,
    clock,
    ids,
    vault,
    governors: createSessionGovernors({
      id,
      store,
      clock,
      ids,
      keys,
      signer: signer,
      policy,
      limits: { approvalTtlMs: limits.interruptTtlMs, ...governorLimits },
      grants: async (threadId) => (await folds.load(threadId))?.state.grants,
      undo: ({ session, tool, args, callId, ...rest }) => {
        const names = { toolCallId: callId, toolName: tool.name }
        const run = (state: ThreadState): unknown => tool.run?.(args, { state, ...names, ...rest })
        return withState(context, session.threadId, run, { allowsOver: true, isRepeatable: false })
      },
    }),
    limits,
    timers,
    callTimers: options.timers?.measuresCalls ? options.timers : undefined,
    spending: options.spending?.length ? spending : undefined,
    instanceEnv: options.env ?? {},
    commit: createCommit({ store, live, dispatcher, edits, outage, node }),
    onEdit: (threadId, listener) => edits.listen(threadId, listener),
    show: (threadId, events) => live.show(threadId, events),
    logger,
    watchdog,
    telemetry: options.telemetry && new Telemetry(options.telemetry, clock),
    late: (report) => reportLate(context, report),
    report(error, threadId) {
      try {
        onError?.(error, threadId)
      } catch {
        // The error handler itself failed, and there is nowhere else to report to.
      }
    },
  }
  const context = createApiContext({
    ...environment,
    live,
    dispatcher,
    outage,
    folds,
    node,
    audit: new AuditReader(store, keys),
  })
  const sign = signer.signApproval
  const isLimited = environment.spending !== undefined || options.retention !== undefined
  const { address } = options.nodes ?? {}
  const parts = { environment, context, store, dispatcher, registry, sign, timers, owner, address }
  return assemble({ ...parts, spending, retention: options.retention, isLimited })
}

function registryFrom(options: RuntimeOptions): ReplaceableRegistry {
  const { agents = [], tools, prompts, models, hooks, effects, endpoints, prices, strict } = options
  const definitions = { agents, tools, prompts, models, hooks, effects, endpoints, prices, strict }
  return replaceableRegistry(options.registry ?? createRegistry(definitions), options.previous)
}

/** Creates the spending limits. Throws if a limit in US dollars cannot be enforced, as a model's price is unknown. */
function spendingOf(
  { spending: rules = [] }: RuntimeOptions,
  {
    registry,
    limits,
    ...parts
  }: Pick<ConstructorParameters<typeof SpendingLimits>[0], 'store' | 'timers' | 'report'> & {
    readonly registry: Registry
    readonly limits: RuntimeLimits
  },
): SpendingLimits {
  const spending = new SpendingLimits({ rules, modelIdleMs: limits.modelIdleMs, ...parts })
  const missing = rules.some(({ maxCostUsd }) => maxCostUsd !== undefined)
    ? unpriced(registry.agents.values())
    : []
  if (missing.length > 0)
    throw new RuntimeError(`A spending rule with maxCostUsd ${noPrice(missing)}.`, {
      code: 'INPUT_INVALID',
      hint: 'Limit tokens with maxTokens, or give the models prices.',
    })
  return spending
}

/**
 * Creates the watchdog, which notices when the event loop is blocked. Returns undefined if it is switched
 * off, or if the runtime has timers of its own, because simulated time says nothing about the event loop.
 */
function watchdogOf(
  { timers, logger, onError }: RuntimeOptions,
  { loopBlockedMs }: RuntimeLimits,
): LoopWatch | undefined {
  if (timers || loopBlockedMs === Infinity) return undefined
  return createLoopWatch({
    blockedMs: loopBlockedMs,
    report(error, { blockedMs, suspects, place, isCertain }) {
      const err = loggedError(error)
      logger?.warn({ err, blockedMs, suspects, place }, 'event loop blocked')
      if (isCertain) onError?.(error, suspects[0]?.threadId)
    },
  })
}

interface Parts {
  readonly environment: KernelEnvironment
  readonly context: ApiContext
  readonly store: Store
  readonly dispatcher: Dispatcher
  readonly registry: ReplaceableRegistry
  readonly sign: ReturnType<typeof createApprovalSigner>['signApproval']
  readonly timers: Timers
  readonly owner: string
  readonly address: string | undefined
  readonly spending: SpendingLimits
  readonly retention: RuntimeOptions['retention']
  /** Whether the operator has set limits on spending or rules for the removal of old threads. */
  readonly isLimited: boolean
}

function assemble({
  environment,
  context,
  store,
  dispatcher,
  registry,
  sign,
  timers,
  owner,
  address,
  spending,
  retention: { rules = [], everyMs } = { rules: [] },
  isLimited,
}: Parts): EmbeddedRuntime {
  const { leaseMs } = environment.limits
  const { node } = context
  const stopping = new AbortController()
  const drain = createDrain(environment, {
    leases: createLeaseKeeper({ store, timers, owner, leaseMs, address }),
    gate: createTrialGate(timers),
    timers,
    memory: context.folds.memory,
  })
  const retention = new Retention({
    rules,
    everyMs,
    store,
    timers,
    commit: (commit) => environment.commit(commit),
    erase: (threadId) => eraseThread(context, threadId, { by: 'retention' }),
    remove: (threadId) => removeThread(context, threadId),
    before: () => spending.forget(),
    report: (error, threadId = '') => environment.report(error, threadId),
  })
  const threads = createThreads(context)
  let isStarted = false
  return {
    registry,
    store,
    threads: {
      ...threads,
      async run(...call) {
        // Without a start the message would wait in the queue, and the caller would wait with it.
        if (!isStarted) throw notStarted()
        return threads.run(...call)
      },
    },
    inbox: {
      ...createInbox(context, (request, by) => sign(request, { by })),
      ...waitingLists(context),
    },
    limits: {
      report: async ({ tenant } = {}) => ({
        spending: await spending.report(tenant),
        retention: await retentionReport(store, tenant),
      }),
      async totals() {
        const prefix = 'limit total '
        const counters = isLimited ? await store.counters(prefix) : []
        return new Map([...counters].map(([name, count]) => [name.slice(prefix.length), count]))
      },
      sweep: () => retention.sweep(),
    },
    users: { values: userValuesApi(context) },
    node,
    stopping: stopping.signal,
    async start() {
      isStarted = true
      environment.watchdog?.start()
      await node?.start()
      if (isLimited && node) node.lead('retention', retention)
      else if (isLimited) retention.start()
      return dispatcher.start(drain)
    },
    async stop(options) {
      stopping.abort()
      // This interval keeps the process alive until `stop` has finished, because the runtime's own timers do
      // not.
      const awake = setInterval(() => {}, 60_000)
      try {
        await retention.stop()
        await dispatcher.stop(options)
        // Also gives back the leases of threads whose work did not end in time: otherwise the next process
        // would take this stop for a crash. If the store cannot be reached, those leases expire.
        await store.release(owner).catch(() => undefined)
        await node?.stop()
        environment.watchdog?.stop()
        await store.close()
      } finally {
        clearInterval(awake)
      }
    },
    idle: () => idle({ dispatcher, store, timers }),
    subscribe: (threadId, options) => context.live.subscribe(threadId, options),
    withState: (threadId, work, { isRepeatable } = {}) =>
      withState(context, threadId, work, { isRepeatable }),
    async *changes(options) {
      for await (const head of context.live.changes(options))
        yield* await threadInfos(context, [head])
    },
    replaceRegistry(next) {
      const before = registry.agents
      registry.replace(next)
      const back = [...next.agents.values()]
        .filter(({ name, hash }) => before.get(name)?.hash !== hash)
        .map(({ name }) => name)
      void wakeThreadsOf(back, context)
    },
  }
}

function notStarted(): RuntimeError {
  return new RuntimeError('The runtime was not started, so no thread would answer.', {
    code: 'RUNTIME_NOT_STARTED',
    hint: 'Write `await runtime.start()` before threads.run(). threads.send() only queues a message.',
  })
}

/** Starts work on threads that waited until one of these agents was defined here, or had the right version. */
async function wakeThreadsOf(
  agents: readonly string[],
  { store, dispatcher, clock }: ApiContext,
): Promise<void> {
  try {
    for (const agent of agents)
      for (let offset = 0; ; offset += 1000) {
        const query = { agent, lifecycle: 'waiting', sort: 'oldest', limit: 1000, offset } as const
        const page = await store.list(query)
        for (const { id, wakeAt } of page)
          if (wakeAt !== null && wakeAt <= clock.now()) dispatcher.wake(id)
        if (page.length < 1000) break
      }
  } catch {
    // The store failed. The dispatcher tries the waiting threads again by itself, a little later.
  }
}
