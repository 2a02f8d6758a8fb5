import { messageOf } from '@skein/base'
import type {
  CheckpointErrorHandler,
  CheckpointStore,
  StepEffect,
} from '../contract/checkpoint-store.ts'
import type { AgentState } from '../state/state.ts'
import { openCallsOf } from '../state/transcript.ts'
import type { AgentStateJSON } from '../state/state-types.ts'
import { CheckpointConflict } from './checkpoint-conflict.ts'
import { journalEntry } from './journal-entry.ts'

/** The settings of a checkpointer. */
export interface CheckpointerOptions {
  readonly store: CheckpointStore
  readonly sessionId: string
  readonly agentId?: string
  /** `async` (default): `save` returns immediately. `sync`: `save` returns a promise that the run awaits. */
  readonly durability?: 'async' | 'sync'
  /** Default: `console.error`. */
  readonly onError?: CheckpointErrorHandler
  /** Called when another run has saved the same session during this run. */
  readonly onConflict?: (conflict: CheckpointConflict) => void
}

/**
 * Saves the states of one run. `save` and `commit` never throw or reject: failures are passed to `onError`.
 */
export interface Checkpointer {
  /** Called after each `step_end`. The state is saved after all earlier saves of the session have ended. */
  save(state: AgentState): void | Promise<void>
  /** Called when the run is over: a run that failed in the middle of a step has not saved after it. */
  end(): Promise<void>
  /** Set if the store has a journal: records each finished call before the run continues. */
  readonly commit?: (effect: StepEffect) => Promise<void>
}

/** The work of one store that is queued. */
interface StoreQueue {
  readonly jobs: KeyedQueue
  /** How many saves of each session have not started yet. */
  readonly waitingSaves: Map<string, number>
}

/** One queue per store, so that saves of a session keep their order, even from several agents. */
const queues = new WeakMap<CheckpointStore, StoreQueue>()

function queueOf(store: CheckpointStore): StoreQueue {
  let queue = queues.get(store)
  if (!queue) queues.set(store, (queue = { jobs: new KeyedQueue(), waitingSaves: new Map() }))
  return queue
}

/** Makes the checkpointer of one run. */
export function checkpointer(given: CheckpointerOptions): Checkpointer {
  const { store, sessionId, agentId, durability = 'async', onError = logCheckpointError } = given
  const { jobs, waitingSaves } = queueOf(store)
  // UAP §12.4.7: a failed save must not stop the run, so it is reported and dropped.
  const attempt = async (write: () => Promise<void>): Promise<void> => {
    try {
      await jobs.run(sessionId, write)
    } catch (error) {
      void reportError(onError, error, sessionId)
    }
  }
  // The version that this run last loaded or saved. If two runs of a session overlap, both start from the
  // same version, so the second one to save finds a version that it did not expect. Stores without versions
  // are not checked.
  let previousVersion: string | null | undefined
  if (store.history && store.loadMetadata)
    void attempt(async () => {
      previousVersion = (await store.loadMetadata!(sessionId))?.checkpointId ?? null
    })
  const saveVersion = async (json: AgentStateJSON, isFollowed: boolean): Promise<void> => {
    const waiting = waitingSaves.get(sessionId)! - 1 // this save has started
    if (waiting > 0) waitingSaves.set(sessionId, waiting)
    else waitingSaves.delete(sessionId)
    // A store without versions gets no options: it may be an application's own store with two parameters.
    const options =
      previousVersion === undefined
        ? []
        : [{ expected: previousVersion, isFollowed: isFollowed || waiting > 0 }]
    try {
      previousVersion = (await store.save(sessionId, json, ...options))?.checkpointId
    } catch (error) {
      if (!(error instanceof CheckpointConflict)) throw error
      // No work is lost: the states of both runs are versions of the session, and the one saved later is the
      // newest.
      previousVersion = (await store.save(sessionId, json))?.checkpointId
      given.onConflict?.(error)
      throw error
    }
  }
  /** Whether the last save expects another one, which has not come yet. */
  let isOpen = false
  const save = async (state: AgentState, isFollowed = false): Promise<void> => {
    isOpen = isFollowed
    try {
      const json = state.toJSON()
      // UAP §12.4.7: a saved state names its session in its metadata. The agent's id is added there too,
      // because stores read it from there.
      const owner = agentId ? { agentId, sessionId } : { sessionId }
      const ownJson = { ...json, metadata: { ...json.metadata, ...owner } }
      waitingSaves.set(sessionId, (waitingSaves.get(sessionId) ?? 0) + 1)
      await attempt(() => saveVersion(ownJson, isFollowed))
    } catch (error) {
      void reportError(onError, error, sessionId)
    }
  }
  /**
   * Besides the saves after each step, saves the state between an inference and its calls, and records the
   * result of each call. If the process dies while the calls run, a resumed run has exactly the calls that
   * the model requested, and the results that existed by then. The save after the step follows.
   */
  const commit = async (effect: StepEffect): Promise<void> => {
    if (effect.type === 'inference_end') {
      if (openCallsOf(effect.state.messages).length > 0) await save(effect.state, true)
    } else if (effect.type === 'call_end' && effect.outcome.type !== 'deferred') {
      const entry = journalEntry(effect.call, effect.outcome, effect.traces)
      await attempt(async () => store.record?.(sessionId, entry))
    }
  }
  return {
    save(state) {
      const saving = save(state)
      if (durability === 'sync') return saving
    },
    async end() {
      if (isOpen) await attempt(async () => store.finish?.(sessionId))
    },
    commit: typeof store.record === 'function' ? commit : undefined,
  }
}

/**
 * Deletes the saved session of a sub-agent whose call has a result, once the caller's state with that result
 * is saved. Never rejects: a failure is reported, and only leaves a session behind that is not needed.
 */
export async function deleteSession(
  store: CheckpointStore,
  sessionId: string,
  {
    after,
    onError = logCheckpointError,
  }: Pick<CheckpointerOptions, 'onError'> & {
    readonly after?: Promise<void>
  },
): Promise<void> {
  try {
    await queueOf(store).jobs.run(sessionId, async () => {
      await after
      await store.delete(sessionId)
    })
  } catch (error) {
    void reportError(onError, error, sessionId)
  }
}

/** Waits until all queued saves are done: those of one session, or of all sessions in the store. */
export async function flushCheckpoints(store: CheckpointStore, sessionId?: string): Promise<void> {
  await queues.get(store)?.jobs.idle(sessionId)
}

/** The default error handler: writes the failure to the console. */
export function logCheckpointError(error: unknown, sessionId: string): void {
  // oxlint-disable-next-line no-console -- UAP §12.4.7: failed saves should be logged
  console.error(`Checkpoint of session ${JSON.stringify(sessionId)}: ${messageOf(error)}`)
}

/**
 * Calls an error handler. If the handler throws or rejects, that error is only logged, because it must not
 * stop the run or the process.
 */
export async function reportError(
  handler: CheckpointErrorHandler,
  error: unknown,
  sessionId: string,
): Promise<void> {
  try {
    await handler(error, sessionId)
  } catch (second) {
    logCheckpointError(second, sessionId)
  }
}

/** Runs jobs with the same key one after the other, and jobs with different keys in parallel. */
export class KeyedQueue {
  readonly #tails = new Map<string, Promise<void>>()

  /** Starts the job when all earlier jobs of its key have ended, successfully or not. */
  run<T>(key: string, job: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key)
    // The async function turns an error that the job throws synchronously into a rejection.
    const result = before ? before.then(job) : (async () => job())()
    const tail = result.then(nothing, nothing).then(() => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key)
    })
    this.#tails.set(key, tail)
    return result
  }

  /** Resolves when all jobs queued so far have ended: the jobs of `key`, or all jobs if no key is given. */
  async idle(key?: string): Promise<void> {
    if (key === undefined) await Promise.all(this.#tails.values())
    else await this.#tails.get(key)
  }
}

function nothing(): void {}
