import { isThreadEvent, type ThreadEvent, type UnknownThreadEvent } from './event.ts'
import { emptyFoldedThread, type SubagentState, type FoldedThread } from './folded-thread.ts'
import { setOwn } from '../json/json-parse.ts'
import {
  addItem,
  applyStream,
  applyTurnEnd,
  applyTurnStart,
  getKey,
  StateEditor,
  type Writable,
} from './reduce-turn.ts'
import {
  applyDelivery,
  applyMessage,
  applyTool,
  applyMessageRemoval,
  applyMessageUpdate,
} from './reduce-message.ts'
import { sumUsage } from '../document/stats.ts'

/** A thread state that may be changed while the current batch of events is processed. */
export type StateDraft = Writable<FoldedThread>

/**
 * Applies one event to the state of a thread and returns the new state; the given state is not changed. No
 * other code computes this state. Events of unknown type are counted and kept as items of their turn.
 */
export function reduceThread(
  state: FoldedThread,
  event: ThreadEvent | UnknownThreadEvent,
): FoldedThread {
  const fold = new ThreadFold(state)
  fold.push(event)
  return fold.state
}

/** Applies many events, in time linear in their number. */
export function foldThread(
  events: Iterable<ThreadEvent | UnknownThreadEvent>,
  from: FoldedThread = emptyFoldedThread,
): FoldedThread {
  const fold = new ThreadFold(from)
  for (const event of events) fold.push(event)
  return fold.state
}

/**
 * Applies events one by one: push events as they arrive, and read `state` at any time. Later events do not
 * change a state that was read before.
 */
export class ThreadFold {
  #editor = new StateEditor()
  #state: StateDraft

  constructor(from: FoldedThread = emptyFoldedThread) {
    this.#state = this.#editor.own(from)
  }

  push(event: ThreadEvent | UnknownThreadEvent): void {
    const state = this.#editor.own(this.#state)
    this.#state = state
    state.eventCount++
    if (event.at > state.updatedAt) state.updatedAt = event.at
    if (isThreadEvent(event)) apply(this.#editor, state, event)
    else {
      state.unknownEvents++
      addItem(this.#editor, state, event)
    }
  }

  get state(): FoldedThread {
    this.#editor = new StateEditor()
    return this.#state
  }
}

function apply(edit: StateEditor, state: StateDraft, event: ThreadEvent): void {
  switch (event.type) {
    case 'thread_created':
    case 'thread_updated':
      return applyThread(edit, state, event)
    case 'agent_registered':
      return setOwn(edit.at(state, 'agents'), event.agent.agent_id, event.agent)
    case 'message_added':
      return applyMessage(edit, state, event)
    case 'message_updated':
      return applyMessageUpdate(edit, state, event)
    case 'message_removed':
      return applyMessageRemoval(edit, state, event)
    case 'delivery_changed':
      return applyDelivery(edit, state, event)
    case 'turn_start':
      return applyTurnStart(edit, state, event)
    case 'turn_end':
      return applyTurnEnd(edit, state, event)
    case 'step_start':
    case 'step_end':
    case 'step_reset':
    case 'text_delta':
    case 'reasoning_delta':
    case 'tool_call_delta':
      return applyStream(edit, state, event)
    case 'tool_execution_start':
    case 'tool_execution_progress':
    case 'tool_execution_end':
    case 'tool_call_hidden':
    case 'interrupt_opened':
    case 'interrupt_answered':
      return applyTool(edit, state, event)
    case 'subagent_created':
    case 'subagent_updated':
    case 'subagent_ended':
      applySubagent(edit, state, event)
      return addItem(edit, state, event)
    case 'file_written':
    case 'file_removed':
      applyFile(edit, state, event)
      return addItem(edit, state, event)
    case 'evidence_added':
      edit.at(state, 'evidence').push(event)
      return addItem(edit, state, event)
    case 'gate_decided':
      edit.at(state, 'gates').push(event)
      return addItem(edit, state, event)
    case 'error_raised':
      edit.at(state, 'errors').push(event)
      return addItem(edit, state, event)
    case 'agent_handoff':
    case 'late_result':
    case 'source_added':
      return addItem(edit, state, event)
    case 'custom_event':
      return event.isTransient ? undefined : addItem(edit, state, event)
    case 'status_changed':
      state.status = event.status
      if (event.text === undefined) delete state.statusText
      else state.statusText = event.text
      return
    case 'usage_recorded':
      state.usage = sumUsage([state.usage, event.usage]) ?? state.usage
      return
    default:
      return event satisfies never
  }
}

function applyThread(
  edit: StateEditor,
  state: StateDraft,
  event: Extract<ThreadEvent, { type: 'thread_created' | 'thread_updated' }>,
): void {
  if (event.type === 'thread_created') {
    state.threadId = event.threadId
    state.createdAt = event.at
    if (event.parentThreadId !== undefined) state.parentThreadId = event.parentThreadId
  }
  if (event.title !== undefined) state.title = event.title
  if (!event.metadata) return
  const metadata = edit.at(state, 'metadata')
  for (const [key, value] of Object.entries(event.metadata)) {
    if (value === null) delete metadata[key]
    else setOwn(metadata, key, value)
  }
}

function applySubagent(
  edit: StateEditor,
  state: StateDraft,
  event: Extract<ThreadEvent, { type: 'subagent_created' | 'subagent_updated' | 'subagent_ended' }>,
): void {
  const subagents = edit.at(state, 'subagents')
  if (event.type === 'subagent_created') {
    const { type: _, at, ...fields } = event
    return setOwn<SubagentState>(subagents, event.reference, {
      ...fields,
      createdAt: at,
      status: 'running',
    })
  }
  const subagent = getKey(subagents, event.reference)
  if (!subagent) return
  const next: SubagentState =
    event.type === 'subagent_updated'
      ? { ...subagent, status: event.status, statusText: event.statusText ?? subagent.statusText }
      : { ...subagent, status: event.outcome, endedAt: event.at, result: event.result }
  setOwn<SubagentState>(subagents, event.reference, next)
}

function applyFile(
  edit: StateEditor,
  state: StateDraft,
  event: Extract<ThreadEvent, { type: 'file_written' | 'file_removed' }>,
): void {
  const files = edit.at(state, 'files')
  if (event.type === 'file_removed') {
    delete files[event.path]
    return
  }
  const { path, mediaType, sizeBytes, hash, at } = event
  setOwn(files, path, {
    path,
    mediaType,
    sizeBytes,
    writtenAt: at,
    hash,
  })
}
