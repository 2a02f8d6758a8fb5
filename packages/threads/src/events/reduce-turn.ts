import type { ThreadEvent, TurnEnd, TurnStart, UnknownThreadEvent } from './event.ts'
import type {
  AgentTurnState,
  DraftBlock,
  DraftState,
  EventItem,
  TurnState,
} from './folded-thread.ts'
import type { StateDraft } from './reduce-thread.ts'
import { setOwn } from '../json/json-parse.ts'

/** Applies the beginning of an agent's turn to the state. */
export function applyTurnStart(edit: StateEditor, state: StateDraft, event: TurnStart): void {
  const { turnId, agentId, at, continues } = event
  const turn: AgentTurnState = {
    kind: 'agent',
    turnId,
    agentId,
    startedAt: at,
    outcome: 'running',
    items: edit.adopt([]),
    calls: edit.adopt([]),
    continues,
  }
  pushTurn(edit, state, turn)
}

/** Applies the end of an agent's turn to the state. */
export function applyTurnEnd(edit: StateEditor, state: StateDraft, event: TurnEnd): void {
  const turn = agentTurn(edit, state, event.turnId, event.at)
  turn.outcome = event.outcome
  turn.endedAt = event.at
  if (event.reason !== undefined) turn.reason = event.reason
  // A turn that did not complete keeps its streamed content as a draft. In a completed turn, the content is
  // in the messages, so the draft is dropped.
  const { draft } = turn
  closeDraft(edit, turn)
  if (draft && event.outcome !== 'completed') turn.draft = { ...draft, events: [] }
}

function newDraft(edit: StateEditor, stepId: string): DraftState {
  return edit.adopt({ stepId, blocks: edit.adopt([]), events: edit.adopt([]) })
}

/**
 * Removes the draft of a turn (its unfinished message), and adds the events that arrived while it was
 * streamed to the turn's items.
 */
export function closeDraft(edit: StateEditor, turn: Writable<AgentTurnState>): void {
  if (turn.draft) edit.at(turn, 'items').push(...turn.draft.events)
  delete turn.draft
}

type StreamEvent = Extract<
  ThreadEvent,
  {
    type:
      | 'step_start'
      | 'step_end'
      | 'step_reset'
      | 'text_delta'
      | 'reasoning_delta'
      | 'tool_call_delta'
  }
>

/** Applies a stream event to the draft (the unfinished message) of its turn. */
export function applyStream(edit: StateEditor, state: StateDraft, event: StreamEvent): void {
  const turn = agentTurn(edit, state, event.turnId, event.at)
  switch (event.type) {
    case 'step_start':
    case 'step_reset':
      closeDraft(edit, turn)
      turn.draft = newDraft(edit, event.stepId)
      return
    case 'step_end':
      return
    case 'text_delta':
      return appendDelta(edit, turn, { type: 'text', id: event.blockId, text: event.text })
    case 'reasoning_delta':
      return appendDelta(edit, turn, { type: 'reasoning', id: event.blockId, text: event.text })
    case 'tool_call_delta':
      return appendDelta(edit, turn, {
        type: 'tool_call',
        id: event.toolCallId,
        toolName: event.toolName,
        text: event.argumentsText,
      })
    default:
      return event satisfies never
  }
}

function appendDelta(edit: StateEditor, turn: Writable<AgentTurnState>, delta: DraftBlock): void {
  turn.draft ??= newDraft(edit, '')
  const blocks = edit.at(edit.at(turn as { draft: DraftState }, 'draft'), 'blocks')
  // The search starts at the end, because the block that grows is nearly always the last block.
  const index = blocks.findLastIndex((block) => block.id === delta.id && block.type === delta.type)
  if (index < 0) blocks.push(edit.adopt({ ...delta }))
  else edit.at(blocks, index).text += delta.text
}

/**
 * Adds an event at the end of the turn with its `turnId`, or of the last turn if there is no such turn. While
 * a message of the turn is being streamed, the event is stored with that draft. Events before the first turn
 * are stored in the state itself.
 */
export function addItem(
  edit: StateEditor,
  state: StateDraft,
  event: (ThreadEvent & { readonly turnId?: string }) | UnknownThreadEvent,
): void {
  const turnId = event.turnId
  const index =
    (typeof turnId === 'string' ? getKey(state.index.turns, turnId) : undefined) ??
    state.turns.length - 1
  const item: EventItem = { kind: 'event', event }
  if (index < 0) {
    state.beforeTurns ??= []
    edit.at(state, 'beforeTurns').push(item)
    return
  }
  const turn = edit.at(edit.at(state, 'turns'), index)
  if (turn.kind === 'agent' && turn.draft && turn.outcome === 'running') {
    const draft = edit.at(turn as { draft: DraftState }, 'draft')
    edit.at(draft, 'events').push(item)
  } else edit.at(turn, 'items').push(item)
}

/**
 * Returns the agent turn with this id, writable. A turn whose start event is missing from the list is opened
 * here, so that its content is not lost.
 */
export function agentTurn(
  edit: StateEditor,
  state: StateDraft,
  turnId: string,
  at: string,
  agentId = '',
): Writable<AgentTurnState> {
  const index = getKey(state.index.turns, turnId)
  const turn = index === undefined ? undefined : edit.at(edit.at(state, 'turns'), index)
  if (turn?.kind === 'agent') return turn
  applyTurnStart(edit, state, { type: 'turn_start', turnId, agentId, at })
  return edit.at(edit.at(state, 'turns'), state.turns.length - 1) as Writable<AgentTurnState>
}

/** Adds a turn at the end of the thread, and its position to the index. */
export function pushTurn(edit: StateEditor, state: StateDraft, turn: TurnState): void {
  const turns = edit.at(state, 'turns')
  setOwn(edit.at(edit.at(state, 'index'), 'turns'), turn.turnId, turns.length)
  turns.push(edit.adopt(turn))
}

/** `T` with writable properties. The properties of nested objects stay read-only. */
export type Writable<T> = T extends readonly (infer E)[] ? E[] : { -readonly [K in keyof T]: T[K] }

/**
 * Creates a changed state without changing the objects of the original state. One editor is used for one
 * batch of events: the first time the batch writes to an object, the object is copied; later writes of the
 * same batch change that copy. So applying n events takes linear time, and a state that was returned earlier
 * never changes.
 */
export class StateEditor {
  readonly #owned = new Set<object>()

  /**
   * Returns a copy of `value` that this editor may change, or `value` itself when it is such a copy already.
   */
  own<T extends object>(value: T): Writable<T> {
    if (this.#owned.has(value)) return value as Writable<T>
    const copy = (Array.isArray(value) ? value.slice() : { ...value }) as Writable<T>
    this.#owned.add(copy)
    return copy
  }

  /**
   * Replaces `holder[key]` by a writable copy and returns the copy. `holder` itself must be writable already.
   */
  at<T extends object, K extends keyof T>(holder: T, key: K): Writable<NonNullable<T[K]>> {
    const child = this.own(holder[key] as object)
    holder[key] = child as T[K]
    return child as Writable<NonNullable<T[K]>>
  }

  /** Marks an object that was created in this batch as writable, so that it is not copied. */
  adopt<T extends object>(value: T): T {
    this.#owned.add(value)
    return value
  }
}

/** Reads an own key of a record, so that an id such as `constructor` does not find an inherited property. */
export function getKey<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}
