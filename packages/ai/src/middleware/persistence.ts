import type { MessageJSON } from '@skein/base'
import { isUPPError } from '../contract/error.ts'
import { messageFromJSON, messageToJSON } from '../contract/message-json.ts'
import type { Middleware, MiddlewareContext } from '../contract/middleware.ts'
import { Thread, type ThreadOptions } from '../contract/thread.ts'
import type { OpenCall, TokenUsage, Turn } from '../contract/turn.ts'

/** One call as it is stored: plain JSON, bytes included. */
export interface SavedTurn {
  /** A failed or cancelled call is stored with the messages produced until then. */
  readonly status: 'complete' | 'failed' | 'cancelled'
  readonly provider: string
  readonly modelId: string
  /** The inputs and all produced messages, in order. */
  readonly messages: readonly MessageJSON[]
  readonly usage: TokenUsage
  readonly stopReason: string
  readonly openCalls: readonly OpenCall[]
  /** ISO 8601. */
  readonly startedAt: string
  readonly endedAt: string
  readonly error?: { readonly code: string; readonly message: string }
}

/** Stores turns, e.g. in a table with one row per turn, a file or a map. */
export interface TurnStore {
  append(threadId: string, turn: SavedTurn): void | Promise<void>
  /** Returns all turns of a thread, oldest first; an empty list for an unknown thread. */
  load(threadId: string): readonly SavedTurn[] | Promise<readonly SavedTurn[]>
}

/** Settings of `persistenceMiddleware`. */
export interface PersistenceOptions {
  readonly store: TurnStore
  readonly threadId: string
  /**
   * Called when a failed call cannot be saved. This error is not thrown, because it would hide the error of
   * the call.
   */
  readonly onSaveError?: (error: unknown, turn: SavedTurn) => void
}

/**
 * Saves each call when it has ended: the whole turn, or the produced part if it failed. If a complete turn
 * cannot be saved, the call fails, with the turn in `error.turn`.
 *
 *     const thread = await loadThread(store, 'thread-1')
 *     const saved = model.with({ middleware: [persistenceMiddleware({ store, threadId: thread.id })] })
 *     thread.append(await saved.generate(thread, 'Hello!'))
 */
export function persistenceMiddleware(options: PersistenceOptions): Middleware {
  const { store, threadId, onSaveError = () => {} } = options
  /** Calls that are already saved. A later hook may still fail such a call; it must not be saved twice. */
  const saved = new WeakSet<MiddlewareContext>()

  async function saveFailed(error: Error, context: MiddlewareContext): Promise<void> {
    const turn = isUPPError(error) ? error.turn : undefined
    // A call that was refused because of its inputs has no messages.
    if (!turn?.messages.length || saved.has(context)) return
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
      await store.append(threadId, toRow(context.response as Turn, context)) // the response of an LLM call
      saved.add(context)
    },
    onError: saveFailed,
    onAbort: saveFailed,
  }
}

/** Settings of `loadThread`. */
export interface LoadThreadOptions extends Pick<ThreadOptions, 'clock'> {
  /** Whether to include the messages of failed or cancelled calls. Default: only complete turns. */
  readonly includePartial?: boolean
}

/** Returns the stored conversation as a thread that can be continued. */
export async function loadThread(
  store: TurnStore,
  threadId: string,
  { includePartial = false, ...options }: LoadThreadOptions = {},
): Promise<Thread> {
  const turns = await store.load(threadId)
  const storedTurns = turns.filter(({ status }) => includePartial || status === 'complete')
  const messages = storedTurns.flatMap((turn) => turn.messages.map(messageFromJSON))
  return new Thread({ ...options, id: threadId, messages })
}

/** Stores turns in the memory of this process. */
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
