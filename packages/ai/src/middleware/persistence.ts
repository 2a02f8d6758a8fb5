import type { MessageJSON } from '@skein/base'
import { isUPPError } from '../contract/error.ts'
import { messageFromJSON, messageToJSON } from '../contract/message-json.ts'
import type { Middleware, MiddlewareContext } from '../contract/middleware.ts'
import { Thread, type ThreadOptions } from '../contract/thread.ts'
import type { OpenCall, TokenUsage, Turn } from '../contract/turn.ts'

/** One call as it is kept: plain JSON, bytes included. */
export interface SavedTurn {
  /** What is kept of a failed or cancelled call is what had been produced. */
  readonly status: 'complete' | 'failed' | 'cancelled'
  readonly provider: string
  readonly modelId: string
  /** Inputs and everything produced, in order. */
  readonly messages: readonly MessageJSON[]
  readonly usage: TokenUsage
  readonly stopReason: string
  readonly openCalls: readonly OpenCall[]
  /** ISO 8601. */
  readonly startedAt: string
  readonly endedAt: string
  readonly error?: { readonly code: string; readonly message: string }
}

/** Where turns are kept: a table with a row for each, a file, a map. */
export interface TurnStore {
  append(threadId: string, turn: SavedTurn): void | Promise<void>
  /** All turns of a thread, oldest first; none for one that is not known. */
  load(threadId: string): readonly SavedTurn[] | Promise<readonly SavedTurn[]>
}

/** Settings of `persistenceMiddleware`. */
export interface PersistenceOptions {
  readonly store: TurnStore
  readonly threadId: string
  /** Called when a failed call could not be saved: that error must not hide the error of the call. */
  readonly onSaveError?: (error: unknown, turn: SavedTurn) => void
}

/**
 * Saves each call when it has ended: the whole turn, or what there was of it when it failed. A turn
 * that cannot be saved fails the call, with the turn in `error.turn`.
 *
 *     const thread = await loadThread(store, 'thread-1')
 *     const saved = model.with({ middleware: [persistenceMiddleware({ store, threadId: thread.id })] })
 *     thread.append(await saved.generate(thread, 'Hello!'))
 */
export function persistenceMiddleware(options: PersistenceOptions): Middleware {
  const { store, threadId, onSaveError = () => {} } = options
  /** A later hook may still fail a call that is saved already; it is one row either way. */
  const saved = new WeakSet<MiddlewareContext>()

  async function saveFailed(error: Error, context: MiddlewareContext): Promise<void> {
    const turn = isUPPError(error) ? error.turn : undefined
    if (!turn || saved.has(context)) return
    const row = toRow(turn, context, error)
    try {
      await store.append(threadId, row)
    } catch (failure) {
      onSaveError(failure, row)
    }
  }

  return {
    name: 'persistence',
    async onEnd(context) {
      if (context.modality !== 'llm') return
      await store.append(threadId, toRow(context.response as Turn, context)) // of this modality
      saved.add(context)
    },
    onError: saveFailed,
    onAbort: saveFailed,
  }
}

/** Settings of `loadThread`. */
export interface LoadThreadOptions extends Pick<ThreadOptions, 'clock'> {
  /** Also what calls had produced that failed or were cancelled. Default: complete turns alone. */
  readonly includePartial?: boolean
}

/** The conversation so far, to go on with. */
export async function loadThread(
  store: TurnStore,
  threadId: string,
  { includePartial = false, ...options }: LoadThreadOptions = {},
): Promise<Thread> {
  const turns = await store.load(threadId)
  const kept = turns.filter(({ status }) => includePartial || status === 'complete')
  const messages = kept.flatMap((turn) => turn.messages.map(messageFromJSON))
  return new Thread({ ...options, id: threadId, messages })
}

/** Turns in the memory of this process. */
export function memoryTurns(): TurnStore {
  const threads = new Map<string, SavedTurn[]>()
  return {
    append(threadId, turn) {
      const turns = threads.get(threadId)
      if (turns) turns.push(turn)
      else threads.set(threadId, [turn])
    },
    load: (threadId) => [...(threads.get(threadId) ?? [])],
  }
}

function toRow(turn: Turn, context: MiddlewareContext, error?: Error): SavedTurn {
  const { provider, modelId, startTime, endTime = startTime } = context
  const { usage, stopReason, openCalls, messages } = turn
  const code = isUPPError(error) ? error.code : undefined
  return {
    status: !error ? 'complete' : code === 'CANCELLED' ? 'cancelled' : 'failed',
    provider,
    modelId,
    messages: messages.map(messageToJSON),
    usage,
    stopReason,
    openCalls,
    startedAt: new Date(startTime).toISOString(),
    endedAt: new Date(endTime).toISOString(),
    error: error && { code: code ?? 'ERROR', message: error.message },
  }
}
