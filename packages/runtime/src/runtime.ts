import { join } from 'node:path'
import {
  defaultInputLimits,
  type Clock,
  type IdSource,
  systemClock,
  timeOrderedIds,
} from '@skein/base'
import type { GovernorLimits, Policy } from '@skein/governance'
import type { ApprovalIssuer } from '@skein/governance/approvals'
import {
  type ApiContext,
  createApiContext,
  createCommit,
  createFoldMemory,
} from './api/api-context.ts'
import { createInbox } from './api/inbox.ts'
import { createThreads } from './api/threads.ts'
import { withState } from './api/with-state.ts'
import {
  createRegistry,
  type RegistryOptions,
  replaceableRegistry,
  type ReplaceableRegistry,
} from './definitions/load/registry.ts'
import type { Registry } from './definitions/resolved.ts'
import { type Dispatcher, systemTimers, type Timers } from './dispatch/dispatcher.ts'
import { inProcessDispatcher } from './dispatch/in-process-dispatcher.ts'
import { createApprovalDesk } from './governance/approval-desk.ts'
import { exportAudit } from './governance/audit-export.ts'
import { type GovernanceKeys, openGovernanceKeys } from './governance/governance-keys.ts'
import { createSessionGovernors } from './governance/session-governors.ts'
import { createDrain } from './drain.ts'
import type { KernelEnvironment, RuntimeLimits } from './contract/context.ts'
import { createLiveBus } from './live/live-bus.ts'
import type { Runtime } from './contract/runtime-api.ts'
import { aesVault, openVaultKey, storedVaultKey } from './secrets/vault.ts'
import type { ThreadState } from './contract/thread-state.ts'
import { memoryStore } from './store/memory-store.ts'
import { sqliteStore } from './store/sqlite-store.ts'
import type { Store } from './store/store.ts'
import { upcastingStore } from './contract/upcast.ts'

/**
 * The options of a runtime. The agents come from `agents` or `registry`; every other option may be left out.
 */
export interface RuntimeOptions extends Omit<RegistryOptions, 'agents'> {
  /** The agents. Prompts, tools and agents that they refer to need not be listed. */
  readonly agents?: RegistryOptions['agents']
  /**
   * A registry that was loaded already, e.g. by `discover`; `agents` and all other definitions are then
   * ignored.
   */
  readonly registry?: Registry
  /**
   * The folder of the database and the keys. Without a folder and without a store, everything is kept in
   * memory.
   */
  readonly folder?: string
  readonly store?: Store
  readonly dispatcher?: (parts: { readonly store: Store; readonly timers: Timers }) => Dispatcher
  readonly clock?: Clock
  readonly timers?: Timers
  /** Ids of threads, messages and sessions. Default: UUIDv7. */
  readonly ids?: IdSource
  /** Names this installation in audit logs and approvals. Default `skein`. */
  readonly id?: string
  /** Variables of this installation; a thread's variable of the same name overrides them. */
  readonly env?: Readonly<Record<string, string>>
  /** The key that encrypts stored secrets, 32 bytes. Default: a key file in the folder. */
  readonly secretKey?: Uint8Array
  readonly keys?: GovernanceKeys
  /**
   * Decides about calls of tools. Default: low-risk writes are allowed, high-risk writes need the approval of
   * a person.
   */
  readonly policy?: Policy | readonly Policy[]
  /** Other issuers whose signed approvals are accepted, by name. */
  readonly issuers?: Readonly<Record<string, ApprovalIssuer>>
  readonly governorLimits?: GovernorLimits
  readonly limits?: Partial<RuntimeLimits>
  /** The largest number of threads that are worked on at the same time. Default 128. */
  readonly maxConcurrent?: number
  /** Called with errors of background work, which no caller is waiting for. */
  readonly onError?: (error: unknown, threadId?: string) => void
}

const defaultLimits: RuntimeLimits = {
  modelAttempts: 4,
  modelBackoffMs: 1_000,
  drainAttempts: 5,
  depth: 8,
  sameErrors: 8,
  maxSteps: 250,
  hookTimeoutMs: 5_000,
  maxFileBytes: 64 * 1024 * 1024,
  maxMessageBytes: defaultInputLimits.maxMessageBytes,
  maxToolCalls: defaultInputLimits.maxToolCalls,
  maxToolResultBytes: defaultInputLimits.maxToolResultBytes,
  interruptTtlMs: 7 * 24 * 3_600_000,
  variablesTtlMs: 24 * 3_600_000,
}

/** A runtime whose definitions can be replaced while it runs. */
export interface EmbeddedRuntime extends Runtime {
  readonly store: Store
  /** Replaces the definitions. The new definitions are used from the next step of each thread on. */
  replaceRegistry(registry: Registry): void
}

/**
 * Creates a runtime. It begins to work when `start` is called.
 *
 *     const runtime = await createRuntime({ agents: [support], folder: '.skein' })
 *     await runtime.start()
 *     const thread = await runtime.threads.create({ agent: 'support' })
 *     const { text } = await runtime.threads.run(thread.id, 'Where is my order?')
 */
export async function createRuntime(options: RuntimeOptions): Promise<EmbeddedRuntime> {
  const { folder, clock = systemClock, timers = systemTimers(clock), id = 'skein' } = options
  const { agents = [], tools, prompts, models, hooks, effects, endpoints, strict } = options
  const definitions = { agents, tools, prompts, models, hooks, effects, endpoints, strict }
  const registry = replaceableRegistry(options.registry ?? createRegistry(definitions))
  const openStore = (): Store =>
    folder === undefined ? memoryStore() : sqliteStore({ path: join(folder, 'skein.db') })
  const store = upcastingStore(options.store ?? openStore())
  const ids = options.ids ?? timeOrderedIds({ clock })
  const keys =
    options.keys ??
    (await openGovernanceKeys(folder === undefined ? { store } : { folder: join(folder, 'keys') }))
  const key =
    options.secretKey ??
    (folder === undefined
      ? await storedVaultKey(store)
      : openVaultKey(join(folder, 'keys', 'secrets.key')))
  const { maxConcurrent, onError } = options
  const dispatcher =
    options.dispatcher?.({ store, timers }) ??
    inProcessDispatcher({ store, timers, maxConcurrent, onError })
  const live = createLiveBus({ store, clock })
  const desk = createApprovalDesk({
    id,
    keys,
    clock,
    issuers: options.issuers,
  })
  const { policy, governorLimits } = options
  const limits = { ...defaultLimits, ...options.limits }
  const environment: KernelEnvironment = {
    registry,
    store,
    clock,
    ids,
    vault: aesVault({ key }),
    governors: createSessionGovernors({
      id,
      store,
      clock,
      ids,
      keys,
      desk,
      policy,
      limits: { approvalTtlMs: limits.interruptTtlMs, ...governorLimits },
      undo: ({ session, tool, args, callId, ...rest }) => {
        const names = { toolCallId: callId, toolName: tool.name }
        const run = (state: ThreadState): unknown => tool.run?.(args, { state, ...names, ...rest })
        return withState(context, session.threadId, run, { allowsOver: true })
      },
    }),
    limits,
    instanceEnv: options.env ?? {},
    commit: createCommit({ store, live, dispatcher }),
    show: (threadId, events) => live.show(threadId, events),
  }
  const context = createApiContext({
    ...environment,
    live,
    dispatcher,
    audit: (tree) => exportAudit(store, tree, keys),
  })
  return assemble({ environment, context, store, dispatcher, registry, sign: desk.signApproval })
}

interface Parts {
  readonly environment: KernelEnvironment
  readonly context: ApiContext
  readonly store: Store
  readonly dispatcher: Dispatcher
  readonly registry: ReplaceableRegistry
  readonly sign: ReturnType<typeof createApprovalDesk>['signApproval']
}

function assemble({
  environment,
  context,
  store,
  dispatcher,
  registry,
  sign,
}: Parts): EmbeddedRuntime {
  const drain = createDrain(environment, createFoldMemory())
  return {
    registry,
    store,
    threads: createThreads(context),
    inbox: createInbox(context, (request, by) => sign(request, { by })),
    start: () => dispatcher.start(drain),
    async stop(options) {
      // This interval keeps the process alive until `stop` has finished, because the runtime's own timers do
      // not.
      const awake = setInterval(() => {}, 60_000)
      try {
        await dispatcher.stop(options)
        await store.close()
      } finally {
        clearInterval(awake)
      }
    },
    idle: () => dispatcher.idle(),
    subscribe: (threadId, options) => context.live.subscribe(threadId, options),
    withState: (threadId, work) => withState(context, threadId, work),
    changes: (options) => context.live.changes(options),
    replaceRegistry: (next) => registry.replace(next),
  }
}
