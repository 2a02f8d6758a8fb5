import type { Message } from '@skein/ai'
import type { CheckpointStore } from '../checkpoint.ts'
import type { StepEffect } from '../execution.ts'
import type { AgentState, AgentStateJSON } from '../state.ts'
import { openCallsOf } from '../transcript.ts'
import { journalEntry, keepsJournal, type JournalingStore } from './journal.ts'
import { KeyedQueue } from './keyed-queue.ts'
import { logCheckpointError, reportError, type CheckpointErrorHandler } from './report-error.ts'

export interface CheckpointerOptions {
  readonly store: CheckpointStore
  readonly sessionId: string
  readonly agentId?: string
  /** `async` (default): nobody waits for a save. `sync`: `save` gives a promise to wait for. */
  readonly durability?: 'async' | 'sync'
  /** Default: `console.error`. */
  readonly onError?: CheckpointErrorHandler
}

/** Saves the states of one run. Nothing it does throws or rejects. */
export interface Checkpointer {
  /** For each `step_end`: takes the state as it is now and saves it after all earlier ones. */
  save(state: AgentState): void | Promise<void>
  /** Where the store keeps a journal: notes each finished call before the run goes on. */
  readonly commit?: (effect: StepEffect) => Promise<void>
}

/** Saves of one store and session keep their order, also those of several agents. */
const queues = new WeakMap<CheckpointStore, KeyedQueue>()

export function checkpointer(options: CheckpointerOptions): Checkpointer {
  const { store, durability = 'async' } = options
  const save = (state: AgentState): Promise<void> => enqueue(options, state)
  return {
    save(state) {
      const saved = save(state)
      if (durability === 'sync') return saved
    },
    ...(keepsJournal(store) && { commit: journalling({ ...options, store }, save) }),
  }
}

/** Waits until all that was to be saved is saved: of one session, or of all in the store. */
export async function flushCheckpoints(store: CheckpointStore, sessionId?: string): Promise<void> {
  await queues.get(store)?.idle(sessionId)
}

/** UAP §12.4.7: a save that fails must not stop the run, so it is reported and dropped. */
async function enqueue(options: CheckpointerOptions, state: AgentState): Promise<void> {
  const { store, sessionId, onError = logCheckpointError } = options
  try {
    const json = stamped(state.toJSON(), options)
    await queueOf(store).run(sessionId, () => store.save(sessionId, json))
  } catch (error) {
    reportError(onError, error, sessionId)
  }
}

function queueOf(store: CheckpointStore): KeyedQueue {
  const known = queues.get(store)
  if (known) return known
  const queue = new KeyedQueue()
  queues.set(store, queue)
  return queue
}

/** UAP §12.4.7: the session's id is in the checkpoint itself; the store reads the agent's there. */
function stamped(json: AgentStateJSON, options: CheckpointerOptions): AgentStateJSON {
  const { sessionId, agentId } = options
  return { ...json, metadata: { ...json.metadata, ...(agentId && { agentId }), sessionId } }
}

/**
 * Also saves the state between an inference and its calls, and notes each result. A process that
 * dies among them resumes with the very calls the model asked for and the results it already has.
 */
function journalling(
  options: CheckpointerOptions & { readonly store: JournalingStore },
  save: (state: AgentState) => Promise<void>,
): (effect: StepEffect) => Promise<void> {
  const { store, sessionId, onError = logCheckpointError } = options
  let asked: AgentState | undefined
  return async (effect) => {
    if (effect.type === 'inference_start') asked = effect.state
    else if (effect.type === 'inference_end') {
      const { messages } = effect.turn
      if (asked && openCallsOf(messages).length > 0) await save(withNew(asked, messages))
    } else if (effect.type === 'call_end' && effect.outcome.type !== 'deferred') {
      const entry = journalEntry(effect.call, effect.outcome)
      await queueOf(store)
        .run(sessionId, () => store.record(sessionId, entry))
        .catch((error: unknown) => reportError(onError, error, sessionId))
    }
  }
}

/** A model that is only `generate` and `stream` repeats its inputs in the turn. */
function withNew(state: AgentState, messages: readonly Message[]): AgentState {
  return state.withMessages(messages.filter((message) => !state.messages.includes(message)))
}
