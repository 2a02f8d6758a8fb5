import { load, type ApiContext } from './api-context.ts'
import { isOver, threadIsOver, toRuntimeError } from './edit-thread.ts'
import { redacted, redactorOf } from './redacted-changes.ts'
import { retryWhenLogMoved } from '../commit/log-moved.ts'
import { RuntimeError } from '../contract/error.ts'
import type { ThreadState } from '../contract/thread-state.ts'
import { registryOf } from '../state/kernel-state.ts'
import { isStoreError } from '../store/store-error.ts'
import { rememberRedactor } from '../telemetry/logger.ts'
import { liveParent, writeOf } from '../thread/changes.ts'
import { createEnvReader } from '../thread/env.ts'
import { createThreadFacade, type FacadeChanges } from '../thread/facade.ts'
import { statusToParent } from '../thread/parent-list.ts'
import { checkReads, withUpdates } from '../thread/value-reads.ts'
import { freshUserValues, userChanges } from '../thread/user-values.ts'

interface WithStateOptions {
  readonly allowsOver?: boolean
  /** Whether `work` may be called again after a conflict. Default true. */
  readonly isRepeatable?: boolean
}

/** The maximum number of times that `work` is called while other writers keep changing what it read. */
const MAX_RUNS = 100

/**
 * Calls a function with the state of a thread. Its changes are written in one commit when it returns. If
 * another writer has set a value that the function read, it is called again.
 */
export async function withState<T>(
  context: ApiContext,
  threadId: string,
  work: (state: ThreadState) => T | Promise<T>,
  { allowsOver = false, isRepeatable = true }: WithStateOptions = {},
): Promise<T> {
  for (let runs = 1; ; runs++) {
    const outcome = await runOnce(context, threadId, work, allowsOver)
    try {
      await store(context, threadId, outcome, allowsOver)
      return outcome.result
    } catch (error) {
      const isConflict = error instanceof RuntimeError && error.code === 'STATE_CONFLICT'
      // Events that `work` has shown or committed meanwhile cannot be taken back, so `work` is not called
      // again.
      const mayRepeat = isRepeatable && !outcome.hasTold && runs < MAX_RUNS
      if (!isConflict || !mayRepeat) throw toRuntimeError(error)
    }
  }
}

interface Run<T> {
  readonly result: T
  readonly changes: FacadeChanges
  /** Every secret value, including those that were just set. */
  readonly secrets: readonly string[]
  /** Whether events were shown or committed while the code ran. */
  readonly hasTold: boolean
}

async function runOnce<T>(
  context: ApiContext,
  threadId: string,
  work: (state: ThreadState) => T | Promise<T>,
  allowsOver: boolean,
): Promise<Run<T>> {
  const thread = await load(context, threadId)
  const { head, state: kernel } = thread
  if (!allowsOver && isOver(thread)) throw threadIsOver(thread)
  const registry = registryOf(context.registry, kernel)
  const agent = registry.agent(kernel.agent)
  const { instanceEnv, vault } = context
  let hasTold = false
  const facade = createThreadFacade({
    kernel,
    head,
    environment: registry === context.registry ? context : { ...context, registry },
    env: createEnvReader({ kernel, agent, side: 'a', instanceEnv, vault, threadId }),
    signal: new AbortController().signal,
    allowedTools: [],
    immediate: async (events) => {
      hasTold = true
      const safe = vault.redactor(facade.secrets()).json(events)
      const append = safe.filter((event) => !(event.type === 'custom_event' && event.isTransient))
      const ownEvents = safe.filter((event) => !append.includes(event))
      if (ownEvents.length > 0) context.show(threadId, ownEvents)
      if (append.length === 0) return
      const place = { environment: context, state: kernel, head, at: context.at }
      const hasParent = (await liveParent(place)) !== undefined
      const others = hasParent ? append.flatMap((event) => statusToParent(place, event)) : []
      await context.commit({ point: 'tell', threads: [{ id: threadId, append }, ...others] })
    },
  })
  let result: T
  try {
    result = await work(facade.state)
  } catch (error) {
    const redactor = vault.redactor(facade.secrets())
    rememberRedactor(error, (text) => redactor.text(text))
    throw error
  }
  const secrets = facade.secrets()
  return { result, changes: facade.takeChanges(), secrets, hasTold }
}

/**
 * Commits what the code changed; throws `STATE_CONFLICT` if a value that the code read has been set since.
 */
export async function store(
  context: ApiContext,
  threadId: string,
  run: Run<unknown>,
  allowsOver: boolean,
): Promise<void> {
  const { changes } = run
  const { values } = changes
  const isGuarded = values.reads.length > 0 || values.updates.size > 0
  const storeOnce = async (): Promise<void> => {
    const { head, state } = await load(context, threadId)
    const expectSeq = isGuarded ? state.seq : undefined
    const place = { environment: context, state, head, at: context.at }
    const { events, others, blobs, head: patch } = await writeOf(place, changes)
    if (events.length + others.length === 0 && !values.user) return
    checkReads(state, values.reads)
    const change = {
      id: threadId,
      append: withUpdates(events, values, state.values),
      expectSeq,
      mustBeLive: !allowsOver,
      head: patch,
      wake: { by: context.clock.now() },
    }
    const threads = redacted(context, state, [change, ...others], run.secrets)
    const userValueChanges = userChanges(values, context.at())
    const userValues = userValueChanges && redactorOf(context, state, run.secrets)?.json(userValueChanges)
    try {
      await context.commit({ point: 'with_state', threads, blobs, userValues: userValues ?? userValueChanges })
    } catch (error) {
      if (!values.user || !isStoreError(error, 'VALUE_MOVED')) throw error
      const user = await freshUserValues(context.store, values.user)
      const fresh = { ...changes, values: { ...values, user } }
      await store(context, threadId, { ...run, changes: fresh }, allowsOver)
    }
  }
  // If another writer commits first and has not set the values that were read, these changes are tried again.
  await retryWhenLogMoved(storeOnce, { maxTries: isGuarded ? Infinity : 1 })
}
