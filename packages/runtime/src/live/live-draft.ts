import type { ThreadEvent } from '@skein/threads'
import type { RuntimeEvent } from '../event.ts'

/** What can be shown: events that need not be of the log. */
export type ShownEvent = RuntimeEvent | ThreadEvent

/** A part of the draft as a reader gets it, and how much of the draft it then has. */
export interface DraftPiece {
  readonly event: ShownEvent
  readonly count: number
}

/** Neighbouring pieces that are one for readers who come late: words of one block, or progress of one call. */
interface Run {
  readonly from: number
  to: number
  event: ShownEvent
  /** For words: piece by piece, so that a reader who keeps up never touches the text before. */
  readonly words: string[]
  /** Only readers that were there see it. */
  readonly isTransient: boolean
  readonly order: number
  size: number
}

/**
 * True for events after which the log says all that was shown before them: the message is stored, the
 * call has its result, or a new step begins.
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
      return false
  }
}

/** What the running step of one thread has shown so far, merged so that memory grows with the text only. */
export class LiveDraft {
  /** Pieces shown; readers count them. */
  count = 0
  /** Everything that was ever shown, for those who want only what is new to them. */
  order = 0
  /** Pieces up to this one were too many to keep. */
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
    const size = sizeOf(event)
    this.#size += size
    const last = this.#runs.at(-1)
    if (last && last.size < this.#maxSize / 8 && extend(last, event)) {
      last.to = this.count
      last.size += size
    } else this.#runs.push(this.#newRun(event, size))
    if (this.#size > this.#maxSize) this.#drop()
  }

  /**
   * The next piece for a reader that has `count` of them; undefined when there is none. `since` is the
   * order of the draft when the reader came.
   */
  after(count: number, since: number): DraftPiece | undefined {
    if (count < this.#droppedTo) return undefined
    const place = firstPlace(this.#runs, count)
    for (let index = place; index < this.#runs.length; index++) {
      const run = this.#runs[index]!
      if (run.isTransient && run.order <= since) continue
      return { event: rest(run, count), count: run.to }
    }
    return undefined
  }

  /** The step begins anew, without an event of the log: what it showed is forgotten, the count goes on. */
  restart(): void {
    this.#droppedTo = 0
    this.#size = 0
    this.#runs = []
  }

  /** The log has it all now. Progress of other calls that still run is kept, and shown again. */
  end(event: ShownEvent): void {
    const kept = event.type === 'tool_execution_end' ? otherProgress(this.#runs, event) : []
    this.count = 0
    this.restart()
    for (const shown of kept) this.add(shown)
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
   * Forgets the older half. Who lacks something of it sees nothing of this step until it is stored; who
   * keeps up goes on.
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

/** True for pieces of what a model says. */
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

function extend(run: Run, event: ShownEvent): boolean {
  if (isProgress(run.event) && isProgress(event)) {
    if (run.event.toolCallId !== event.toolCallId) return false
    run.event = event
    return true
  }
  if (!isWords(run.event) || !isWords(event) || blockOf(run.event) !== blockOf(event)) return false
  run.event = event // for its time; the words are kept beside
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

/** The first run that holds something beyond `count`. */
function firstPlace(runs: readonly Run[], count: number): number {
  let low = 0
  let high = runs.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (runs[middle]!.to <= count) low = middle + 1
    else high = middle
  }
  return low
}

/** What the run holds beyond `count`. */
function rest({ from, event, words }: Run, count: number): ShownEvent {
  if (!isWords(event)) return event
  return withText(event, words.slice(Math.max(count + 1 - from, 0)).join(''))
}

function otherProgress(
  runs: readonly Run[],
  { toolCallId }: { readonly toolCallId: string },
): Progress[] {
  const latest = new Map<string, Progress>()
  for (const { event } of runs)
    if (isProgress(event) && event.toolCallId !== toolCallId) latest.set(event.toolCallId, event)
  return [...latest.values()]
}

/** Roughly the characters it keeps. */
function sizeOf(event: ShownEvent): number {
  if (isWords(event)) return textOf(event).length + 8
  return (JSON.stringify(event) ?? '').length
}
