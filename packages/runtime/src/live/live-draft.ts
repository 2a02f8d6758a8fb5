import type { ThreadEvent } from '@skein/threads'
import type { RuntimeEvent } from '../contract/event.ts'

/**
 * The events that readers of a live thread receive: those of its log, and others (deltas, progress)
 * that are never stored.
 */
export type ShownEvent = RuntimeEvent | ThreadEvent

/**
 * The next part of the draft (unstored events of the running step) for a reader, and how many pieces
 * the reader then has.
 */
export interface DraftPiece {
  readonly event: ShownEvent
  readonly count: number
}

/**
 * Consecutive pieces that a late reader receives as one event: deltas of one block, or progress of one call.
 */
interface Run {
  readonly from: number
  to: number
  event: ShownEvent
  /** The texts of the deltas, one per piece, so that a reader that keeps up receives only the new pieces. */
  readonly words: string[]
  /** Whether only readers that were connected when the event came receive it. */
  readonly isTransient: boolean
  order: number
  size: number
}

/** The streamed text that one node sends to another. The first `after` pieces are left out: it has them. */
export interface DraftPart {
  /** 0 if this is the whole draft, which then replaces the copy at the other node. */
  readonly after: number
  readonly count: number
  /** Pieces up to this number were dropped. */
  readonly droppedTo: number
  readonly runs: readonly Pick<Run, 'from' | 'to' | 'event' | 'words'>[]
}

/**
 * Deltas are merged until they have this many characters, so that a reader that is far behind does not hold a
 * copy of the whole text.
 */
const MAX_MERGED = 16 * 1024

/**
 * Whether a stored event replaces the draft, because the answer is stored, a call has
 * its result, or a new step begins. Everything that the draft contained can then be read in the log.
 */
export function endsDraft(event: ShownEvent): boolean {
  switch (event.type) {
    case 'message_added':
      return event.message.type === 'assistant'
    case 'step_start':
    case 'step_reset':
    case 'turn_start':
    case 'turn_end':
    case 'session_end':
    case 'tool_execution_end':
      return true
    default:
      event satisfies KeepsDraft
      return false
  }
}

/**
 * The events of the running step that are not in the log yet. Consecutive deltas are merged, so memory grows
 * with the length of the text and not with the number of deltas.
 */
export class LiveDraft {
  /** Number of pieces since the draft began; part of the event ids that readers receive. */
  count = 0
  /** Number of pieces in all drafts so far; tells which pieces came after a reader connected. */
  order = 0
  /** Pieces up to this number were dropped, because the streamed text became too large. */
  #droppedTo = 0
  #size = 0
  #runs: Run[] = []
  readonly #maxSize: number

  constructor(maxSize: number) {
    this.#maxSize = maxSize
  }

  get isEmpty(): boolean {
    return this.#runs.length === 0
  }

  add(event: ShownEvent): void {
    this.count++
    this.order++
    // The approximate number of characters that are kept.
    const size = isWords(event) ? textOf(event).length + 8 : JSON.stringify(event).length
    this.#size += size
    const last = this.#runs.at(-1)
    if (last && last.size < this.#maxSize / 8 && extend(last, event)) {
      last.to = this.count
      last.size += size
    } else this.#runs.push(this.#newRun(event, size))
    if (this.#size > this.#maxSize) this.#drop()
  }

  /**
   * Returns the next piece for a reader that has `count` pieces; undefined when there is none. `since` is the
   * value of `order` when the reader connected.
   */
  after(count: number, since: number): DraftPiece | undefined {
    if (count < this.#droppedTo) return undefined
    // Binary search for the first run that holds a piece beyond `count`.
    let place = 0
    for (let high = this.#runs.length; place < high;) {
      const middle = (place + high) >> 1
      if (this.#runs[middle]!.to <= count) place = middle + 1
      else high = middle
    }
    for (const { from, to, event, words, isTransient, order } of this.#runs.slice(place)) {
      if (isTransient && order <= since) continue
      if (!isWords(event)) return { event, count: to }
      let text = ''
      let last = Math.max(count + 1, from)
      for (; last <= to && (text === '' || text.length < MAX_MERGED); last++)
        text += words[last - from]
      return { event: withText(event, text), count: last - 1 }
    }
    return undefined
  }

  /** Returns the pieces that follow the first `after` pieces; another node adds them to its copy of the draft. */
  part(after: number): DraftPart {
    const runs = this.#runs
      .filter(({ to }) => to > after)
      .map(({ from, to, event, words }) => {
        const first = Math.max(from, after + 1)
        return { from: first, to, event, words: words.slice(first - from) }
      })
    return { after, count: this.count, droppedTo: this.#droppedTo, runs }
  }

  /**
   * Adds a part of the draft of another node; both nodes then number the pieces alike. Returns false if
   * pieces between this draft and that part are missing.
   */
  join({ after, count, droppedTo, runs }: DraftPart): boolean {
    if (after > this.count) return false
    // Transient pieces up to this number were sent to the readers that were connected then; later
    // readers must not get them.
    const ownCount = this.count
    if (after === 0) {
      this.restart()
      this.count = 0
    }
    for (const { from, to, event, words } of runs) {
      const first = Math.max(from, this.count + 1)
      if (to < first) continue
      // The other node has dropped the pieces before this one, because the step started over.
      if (first > this.count + 1 || event.type === 'step_reset') this.restart()
      this.count = first - 1
      if (isWords(event))
        for (const text of words.slice(first - from)) this.add(withText(event, text))
      else {
        this.count = to - 1
        this.add(event)
      }
      const last = this.#runs.at(-1)!
      if (last.isTransient && to <= ownCount) last.order = 0
    }
    this.count = Math.max(this.count, count)
    this.#droppedTo = Math.max(this.#droppedTo, droppedTo)
    return true
  }

  /** Drops all pieces, because the step starts over and no stored event says so. The numbers of the pieces continue. */
  restart(): void {
    this.#droppedTo = 0
    this.#size = 0
    this.#runs = []
  }

  /**
   * Ends the draft, because the log now has its content. When one call ends, the
   * progress of other running calls is kept.
   */
  end(event: ShownEvent): void {
    const running = new Map<string, Progress>()
    if (event.type === 'tool_execution_end')
      for (const { event: shown } of this.#runs)
        if (isProgress(shown) && shown.toolCallId !== event.toolCallId)
          running.set(shown.toolCallId, shown)
    this.count = 0
    this.restart()
    for (const progress of running.values()) this.add(progress)
  }

  #newRun(event: ShownEvent, size: number): Run {
    return {
      from: this.count,
      to: this.count,
      event,
      words: isWords(event) ? [textOf(event)] : [],
      isTransient: event.type === 'custom_event',
      order: this.order,
      size,
    }
  }

  /**
   * Drops the older half of the streamed text. A reader that has not received all of that half gets
   * nothing more of this step until the answer is stored; a reader that keeps up is not affected.
   */
  #drop(): void {
    let place = 0
    while (this.#size > this.#maxSize / 2 && place < this.#runs.length - 1)
      this.#size -= this.#runs[place++]!.size
    const last = this.#runs[place - 1]
    if (last) this.#droppedTo = last.to
    this.#runs.splice(0, place)
  }
}

type Words = Extract<ShownEvent, { type: 'text_delta' | 'reasoning_delta' | 'tool_call_delta' }>

/** Whether the event is a delta of a model's text, reasoning or arguments. */
export function isWords(event: ShownEvent): event is Words {
  const { type } = event
  return type === 'text_delta' || type === 'reasoning_delta' || type === 'tool_call_delta'
}

function textOf(event: Words): string {
  return event.type === 'tool_call_delta' ? event.argumentsText : event.text
}

function withText(event: Words, text: string): Words {
  return event.type === 'tool_call_delta' ? { ...event, argumentsText: text } : { ...event, text }
}

/** Merges an event into the last run of pieces; returns false if the event belongs to another block or call. */
function extend(run: Run, event: ShownEvent): boolean {
  if (isProgress(run.event) && isProgress(event)) {
    if (run.event.toolCallId !== event.toolCallId) return false
    run.event = event
    return true
  }
  if (!isWords(run.event) || !isWords(event) || blockOf(run.event) !== blockOf(event)) return false
  run.event = event // the latest event, for its time; the text is in `words`
  run.words.push(textOf(event))
  return true
}

function blockOf(event: Words): string {
  const block = event.type === 'tool_call_delta' ? event.toolCallId : event.blockId
  return JSON.stringify([event.type, event.turnId, block])
}

type Progress = Extract<ShownEvent, { type: 'tool_execution_progress' }>

function isProgress(event: ShownEvent): event is Progress {
  return event.type === 'tool_execution_progress'
}

/** Events after which the streamed text is still not in the log. */
// prettier-ignore
type KeepsDraft = Extract<ShownEvent, { type:
  'thread_created' | 'thread_updated' | 'thread_terminated' | 'thread_erased' | 'status_changed' |
  'session_start' | 'session_failing' | 'write_undone' | 'undo_decided' | 'message_queued' |
  'message_unqueued' | 'message_updated' | 'call_changed' | 'message_removed' |
  'delivery_changed' | 'step_failed' | 'text_delta' | 'tool_execution_start' | 'late_result' |
  'call_reset' | 'interrupt_opened' | 'interrupt_answered' | 'subagent_created' |
  'subagent_updated' | 'subagent_ended' | 'agent_handoff' | 'context_compacted' | 'gate_decided' |
  'error_raised' | 'model_requested' | 'model_answered' | 'inference_recorded' |
  'usage_recorded' | 'agent_registered' | 'step_end' | 'reasoning_delta' | 'tool_call_delta' |
  'tool_execution_progress' | 'tool_call_hidden' | 'file_written' | 'file_removed' |
  'source_added' | 'evidence_added' | 'custom_event' | 'session_stop_requested' |
  'immediate_done' | 'stop_requested' | 'turn_cut' | 'resume_requested' | 'value_set' |
  'env_set' | 'effect_scheduled' | 'effect_started' | 'effect_ended' | 'variables_requested' |
  'variables_provided' | 'variables_settled' | 'grant_made' | 'grant_revoked'
}>
