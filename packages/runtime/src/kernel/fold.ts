import type { MessageQueued, RuntimeEvent, StoredEvent } from '../event.ts'
import { checkVersion } from '../upcast.ts'
import { foldCall } from './fold-calls.ts'
import { addMessage, removeMessage, updateMessage } from './fold-messages.ts'
import { foldService } from './fold-services.ts'
import { foldSession, isAwaited } from './fold-session.ts'
import { emptyKernelState } from './empty-state.ts'
import type { KernelState } from './state.ts'

/** Folds a log. Pure: the same events give the same state, in any process. */
export function foldKernel(events: Iterable<StoredEvent>): KernelState {
  const fold = new KernelFold()
  for (const stored of events) fold.push(stored)
  return fold.state
}

/** A fold with a life. Events must come in order; one that was folded already is passed over. */
export class KernelFold {
  readonly state: KernelState = emptyKernelState()

  push({ seq, event }: StoredEvent): void {
    if (seq <= this.state.seq) return
    if (event.type === 'thread_created') checkVersion(event)
    this.state.seq = seq
    apply(this.state, event)
  }
}

function apply(state: KernelState, event: RuntimeEvent): void {
  switch (event.type) {
    case 'thread_created':
      state.threadId = event.threadId
      state.createdAt = event.at
      state.agent = event.agent
      state.title = event.title
      state.depth = event.depth
      state.parent = event.parent
      state.arguments = event.arguments ?? {}
      state.budget = event.budget
      state.metadata = event.metadata ?? {}
      return
    case 'thread_updated':
      state.title = event.title ?? state.title
      state.metadata = { ...state.metadata, ...event.metadata }
      return
    case 'message_queued':
      if (state.queuedIds.has(event.queueId)) return
      state.queuedIds.set(event.queueId, state.seq)
      state.queue.push(event)
      return
    case 'message_unqueued':
      take(state, event.queueId)
      if (!state.session && state.stop === 'requested' && !isAwaited(state)) state.stop = 'stopped'
      return
    case 'message_added':
      if (event.queueId !== undefined) takeForSession(state, event.queueId)
      return addMessage(state, event)
    case 'message_updated':
      return updateMessage(state, event)
    case 'message_removed':
      return removeMessage(state, event.messageId)
    case 'session_start':
    case 'session_end':
    case 'session_stop_requested':
    case 'turn_start':
    case 'turn_end':
    case 'step_start':
    case 'step_end':
    case 'step_failed':
    case 'agent_handoff':
    case 'immediate_done':
    case 'stop_requested':
    case 'resume_requested':
    case 'thread_terminated':
    case 'context_compacted':
      return foldSession(state, event)
    case 'tool_execution_start':
    case 'tool_execution_end':
    case 'tool_call_hidden':
    case 'call_reset':
    case 'interrupt_opened':
    case 'interrupt_answered':
      return foldCall(state, event)
    case 'thread_erased':
      state.isErased = true
      return
    default:
      return foldService(state, event)
  }
}

/** A message that the parent waits for makes it wait for the end of the session that took it. */
function takeForSession(state: KernelState, queueId: string): void {
  const waiter = take(state, queueId)?.parentInterruptId
  if (waiter !== undefined) state.session?.waiters.push(waiter)
}

function take({ queue }: KernelState, queueId: string): MessageQueued | undefined {
  const place = queue.findIndex((queued) => queued.queueId === queueId)
  return place >= 0 ? queue.splice(place, 1)[0] : undefined
}
