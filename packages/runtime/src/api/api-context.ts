import { Outage } from '../commit/outage.ts'
import type { KernelEnvironment } from '../context/environment.ts'
import { RuntimeError } from '../contract/error.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import type { AuditReader } from '../governance/audit-export.ts'
import type { LiveBus } from '../live/live-bus.ts'
import type { RuntimeNode } from '../nodes/nodes.ts'
import { createFoldCache, type FoldCache, type LoadedThread } from '../state/fold-cache.ts'
import type { ThreadHead } from '../store/head.ts'

/** The parts of a runtime that the API is built from. */
export interface ApiEnvironment extends KernelEnvironment {
  readonly live: LiveBus
  readonly dispatcher: Dispatcher
  /** The cache of folds that the API reads. Default: a new cache. */
  readonly folds?: FoldCache
  readonly outage?: Outage
  /** The connection to the other nodes that share the store, if there are any. */
  readonly node?: RuntimeNode | undefined
  /** Reads the audit logs of root threads, with signed checkpoints. */
  readonly audit?: AuditReader
}

/** The context that every function of the API receives. */
export interface ApiContext extends ApiEnvironment {
  readonly folds: FoldCache
  readonly outage: Outage
  /** Returns the current time in the format of event timestamps (ISO 8601). */
  at(): string
}

/** Creates the context of the API functions from the parts of a runtime. */
export function createApiContext(environment: ApiEnvironment): ApiContext {
  const { clock, store, folds = createFoldCache(store), outage = new Outage() } = environment
  return { ...environment, folds, outage, at: () => new Date(clock.now()).toISOString() }
}

/** Reads the head of a thread (its row in the store) without its log. Rejects with `THREAD_NOT_FOUND`. */
export async function headOf({ store }: ApiContext, threadId: string): Promise<ThreadHead> {
  const head = await store.head(threadId)
  if (!head) throw threadNotFound(threadId)
  return head
}

/** Reads the log of a thread and computes its state. Rejects with `THREAD_NOT_FOUND`. */
export async function load(context: ApiContext, threadId: string): Promise<LoadedThread> {
  const thread = await context.folds.load(threadId)
  if (!thread) throw threadNotFound(threadId)
  return thread
}

function threadNotFound(threadId: string): RuntimeError {
  return new RuntimeError(`There is no thread ${threadId}.`, {
    code: 'THREAD_NOT_FOUND',
    hint: 'It may have been removed. Threads are listed with `threads.list`.',
  })
}
