import type { LoggedEvent, ShownThread, TreeState } from '../../state/tree.ts'

/** What a bar shows: a model, a tool, a child thread, or a person's message that waited to be read. */
export type BarKind = 'model' | 'tool' | 'child' | 'person'

/** A period in which something ran, was in a queue, or waited for someone. */
export interface Stretch {
  readonly kind: 'run' | 'queue' | 'wait'
  readonly from: number
  readonly to: number
}

/** One row of the timeline: a request to a model, a call of a tool, a child, or a message. */
export interface TimelineRow {
  readonly key: string
  readonly kind: BarKind
  readonly name: string
  /** The agent that worked. */
  readonly agent: string
  readonly threadId: string
  readonly depth: number
  /** What the page selects for this row. */
  readonly select: string
  readonly from: number
  readonly to: number
  readonly stretches: readonly Stretch[]
  readonly isFailed: boolean
  /** How a call ended, in the word of the API; undefined for what is not a call, or has not ended. */
  readonly outcome?: string
  /** Whether it has not ended. */
  readonly isOpen: boolean
}

type Begun = {
  -readonly [K in keyof Omit<TimelineRow, 'stretches' | 'to'>]: TimelineRow[K]
} & { to?: number; stretches: Stretch[]; childId?: string; runFrom?: number; waitFrom?: number }

/** Returns the rows of a thread and its descendants in order of time; a child follows the call that created it. */
export function rowsOf(tree: TreeState, now: number): readonly TimelineRow[] {
  const rows: TimelineRow[] = []
  const seen = new Set<string>()
  const visit = (thread: ShownThread, depth: number): void => {
    seen.add(thread.threadId)
    for (const row of keptRows(thread, depth, now)) {
      const { childId, runFrom: _, waitFrom: __, ...shown } = row
      rows.push(shown)
      const child = childId === undefined ? undefined : tree.threads.get(childId)
      if (child && !seen.has(child.threadId)) visit(child, depth + 1)
    }
  }
  const root = tree.threads.get(tree.rootId)
  if (root) visit(root, 0)
  return rows
}

type OwnRow = Begun & { readonly to: number }

/** Cached rows of threads in which nothing runs; they stay the same until the thread changes. */
const kept = new WeakMap<
  ShownThread,
  { readonly depth: number; readonly rows: readonly OwnRow[] }
>()

function keptRows(thread: ShownThread, depth: number, now: number): readonly OwnRow[] {
  const known = kept.get(thread)
  if (known?.depth === depth) return known.rows
  const rows = ownRows(thread, depth, now)
  if (!rows.some(({ isOpen }) => isOpen)) kept.set(thread, { depth, rows })
  return rows
}

/** Reads the rows of one thread from its log. */
function ownRows(thread: ShownThread, depth: number, now: number): OwnRow[] {
  const reader = new RowReader(thread, depth)
  for (const logged of thread.events) {
    if (logged.seq > thread.view.seq) break
    reader.read(logged)
  }
  return reader.rows(now)
}

class RowReader {
  readonly #thread: ShownThread
  readonly #depth: number
  readonly #calls = new Map<string, Begun>()
  readonly #models = new Map<string, Begun>()
  readonly #queued = new Map<string, Begun>()
  readonly #children = new Map<string, Begun>()
  readonly #interrupts = new Map<string, Begun>()
  readonly #rows: Begun[] = []
  #agent: string
  #stepAt: number | undefined

  constructor(thread: ShownThread, depth: number) {
    this.#thread = thread
    this.#depth = depth
    this.#agent = thread.view.agent
  }

  read(logged: LoggedEvent): void {
    const { seq, event } = logged
    const at = Date.parse(event.at)
    switch (event.type) {
      case 'message_queued':
      case 'message_unqueued':
      case 'message_added':
        return this.#readMessage(event, seq, at)
      case 'step_start':
      case 'model_requested':
      case 'model_answered':
        return this.#readModel(event, seq, at)
      case 'tool_execution_start':
      case 'tool_execution_end':
      case 'late_result':
      case 'interrupt_opened':
      case 'interrupt_answered':
        return this.#readCall(event, at)
      case 'subagent_created':
      case 'subagent_ended':
        return this.#readChild(event, seq, at)
      case 'turn_start':
        this.#agent = event.agentId.replace(/\/[ab]$/, '')
        return
      case 'session_end':
        // Calls and requests that were cut off by the end of the session have no end event of their own.
        for (const row of [...this.#models.values(), ...this.#calls.values()]) end(row, at, 'run')
        return
      default:
        event satisfies WithoutBar
    }
  }

  /** Returns the rows. A row that has not ended extends to `now`. */
  rows(now: number): OwnRow[] {
    return this.#rows.map((row) => {
      if (row.to === undefined) {
        stretch(row, now)
        if (row.waitFrom !== undefined)
          row.stretches.push({ kind: 'wait', from: row.waitFrom, to: now })
        if (row.kind === 'person') row.stretches.push({ kind: 'queue', from: row.from, to: now })
      }
      return { ...row, to: row.to ?? now }
    })
  }

  #begin(
    { seq, event }: Pick<LoggedEvent, 'seq' | 'event'>,
    row: Pick<Begun, 'kind' | 'name'> & Partial<Begun>,
  ): Begun {
    const { threadId } = this.#thread
    const begun: Begun = {
      key: `${threadId} ${seq} ${this.#rows.length}`,
      agent: this.#agent,
      threadId,
      depth: this.#depth,
      select: `event ${seq} ${threadId}`,
      from: Date.parse(event.at),
      stretches: [],
      isFailed: false,
      isOpen: true,
      ...row,
    }
    this.#rows.push(begun)
    return begun
  }

  #readMessage(
    event: EventOf<'message_queued' | 'message_unqueued' | 'message_added'>,
    seq: number,
    at: number,
  ): void {
    switch (event.type) {
      case 'message_queued': {
        if (event.isSilent) return
        const name = event.subagentId === undefined ? 'message' : 'report of a child'
        const row = this.#begin({ seq, event }, { kind: 'person', name, select: event.message.id })
        this.#queued.set(event.queueId, row)
        return
      }
      case 'message_unqueued':
        return end(this.#queued.get(event.queueId), at, 'queue')
      case 'message_added': {
        const { queueId } = event as { queueId?: string } // events from other sources lack it
        if (queueId !== undefined) end(this.#queued.get(queueId), at, 'queue')
        if (event.message.type !== 'assistant') return
        for (const { toolCallId, toolName } of event.message.toolCalls ?? []) {
          const row = this.#begin(
            { seq, event },
            { kind: 'tool', name: toolName, select: toolCallId },
          )
          this.#calls.set(toolCallId, row)
        }
        return
      }
      default:
        event satisfies never
    }
  }

  #readModel(
    event: EventOf<'step_start' | 'model_requested' | 'model_answered'>,
    seq: number,
    at: number,
  ): void {
    switch (event.type) {
      case 'step_start':
        this.#stepAt = at
        return
      case 'model_requested': {
        const row = this.#begin({ seq, event }, { kind: 'model', name: event.model, runFrom: at })
        // Between the start of the step and the request, hooks ran or the step waited for a limit.
        if (this.#stepAt !== undefined && this.#stepAt < at) {
          row.from = this.#stepAt
          row.stretches.push({ kind: 'queue', from: this.#stepAt, to: at })
        }
        this.#stepAt = undefined
        this.#models.set(event.logId, row)
        return
      }
      case 'model_answered': {
        const row = this.#models.get(event.logId)
        if (row && event.error) row.isFailed = true
        return end(row, at, 'run')
      }
      default:
        event satisfies never
    }
  }

  #readCall(
    event: EventOf<
      | 'tool_execution_start'
      | 'tool_execution_end'
      | 'late_result'
      | 'interrupt_opened'
      | 'interrupt_answered'
    >,
    at: number,
  ): void {
    switch (event.type) {
      case 'tool_execution_start': {
        const row = this.#calls.get(event.toolCallId)
        if (!row) return
        const before = row.stretches.at(-1)?.to ?? row.from
        if (before < at) row.stretches.push({ kind: 'queue', from: before, to: at })
        row.runFrom = at
        return
      }
      case 'tool_execution_end': {
        const row = this.#calls.get(event.toolCallId)
        if (row) row.outcome = event.outcome
        if (row && event.outcome !== 'success' && event.outcome !== 'retry') row.isFailed = true
        return end(row, at, 'run')
      }
      case 'late_result': {
        const row = event.effectId === undefined ? this.#calls.get(event.toolCallId) : undefined
        if (row?.to === undefined) return
        // The call ran on after its outcome had been recorded as unknown.
        row.stretches.push({ kind: 'run', from: row.to, to: at })
        row.to = at
        row.isFailed = event.outcome === 'failed'
        row.outcome = `${row.outcome ?? 'unknown'}, but it ended later: ${event.outcome}`
        return
      }
      case 'interrupt_opened': {
        const row = this.#calls.get(event.interrupt.toolCallId)
        // A call that created a child counts as running while the child works, not as waiting.
        if (!row || event.interrupt.kind === 'child') return
        stretch(row, at)
        row.waitFrom = at
        this.#interrupts.set(event.interrupt.id, row)
        return
      }
      case 'interrupt_answered': {
        const row = this.#interrupts.get(event.interruptId)
        if (row?.waitFrom === undefined) return
        row.stretches.push({ kind: 'wait', from: row.waitFrom, to: at })
        row.waitFrom = undefined
        return
      }
      default:
        event satisfies never
    }
  }

  #readChild(event: EventOf<'subagent_created' | 'subagent_ended'>, seq: number, at: number): void {
    if (event.type === 'subagent_created') {
      const call = event.toolCallId === undefined ? undefined : this.#calls.get(event.toolCallId)
      const row =
        call ?? this.#begin({ seq, event }, { kind: 'child', name: event.name, runFrom: at })
      row.kind = 'child'
      row.childId = event.reference
      this.#children.set(event.reference, row)
    } else if (event.type === 'subagent_ended') {
      const row = this.#children.get(event.reference)
      if (row && event.outcome === 'failed') row.isFailed = true
      if (row && !this.#calls.has(row.select)) end(row, at, 'run')
    }
  }
}

/** Ends the period in which the row runs, at the time `at`. */
function stretch(row: Begun, at: number): void {
  if (row.runFrom !== undefined) row.stretches.push({ kind: 'run', from: row.runFrom, to: at })
  row.runFrom = undefined
}

function end(row: Begun | undefined, at: number, kind: Stretch['kind']): void {
  if (!row || row.to !== undefined) return
  stretch(row, at)
  if (row.waitFrom !== undefined) row.stretches.push({ kind: 'wait', from: row.waitFrom, to: at })
  row.waitFrom = undefined
  if (row.stretches.length === 0) row.stretches.push({ kind, from: row.from, to: at })
  row.to = at
  row.isOpen = false
}

/** Returns how long a row ran, was in a queue and waited, each in ms. */
export function timesOf({ stretches }: TimelineRow): Readonly<Record<Stretch['kind'], number>> {
  const sums = { run: 0, queue: 0, wait: 0 }
  for (const { kind, from, to } of stretches) sums[kind] += to - from
  return sums
}

type EventOf<Type extends LoggedEvent['event']['type']> = Extract<
  LoggedEvent['event'],
  { type: Type }
>

/** Events that draw nothing on the timeline. */
// prettier-ignore
type WithoutBar = Extract<LoggedEvent['event'], { type:
  'thread_created' | 'thread_updated' | 'thread_terminated' | 'thread_erased' | 'status_changed' |
  'session_start' | 'session_failing' | 'write_undone' | 'undo_decided' | 'message_updated' |
  'call_changed' | 'message_removed' | 'delivery_changed' | 'turn_end' | 'step_reset' |
  'step_failed' | 'text_delta' | 'call_reset' | 'subagent_updated' | 'agent_handoff' |
  'context_compacted' | 'gate_decided' | 'error_raised' | 'inference_recorded' |
  'usage_recorded' | 'agent_registered' | 'step_end' | 'reasoning_delta' | 'tool_call_delta' |
  'tool_execution_progress' | 'tool_call_hidden' | 'file_written' | 'file_removed' |
  'source_added' | 'evidence_added' | 'custom_event' | 'session_stop_requested' |
  'immediate_done' | 'stop_requested' | 'turn_cut' | 'resume_requested' | 'value_set' |
  'env_set' | 'effect_scheduled' | 'effect_started' | 'effect_ended' | 'variables_requested' |
  'variables_provided' | 'variables_settled' | 'grant_made' | 'grant_revoked'
}>
