import type { LoggedEvent, ShownThread, TreeState } from '../../state/tree.ts'

/** Who worked: a model, a tool, a child, or a person whose message waited to be read. */
export type BarKind = 'model' | 'tool' | 'child' | 'person'

/** A stretch of time in which something ran, stood in a queue, or waited for somebody. */
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
  /** Whether it has not ended. */
  readonly isOpen: boolean
}

type Begun = {
  -readonly [K in keyof Omit<TimelineRow, 'stretches' | 'to'>]: TimelineRow[K]
} & { to?: number; stretches: Stretch[]; childId?: string; runFrom?: number; waitFrom?: number }

/** Returns the rows of a thread and its descendants in order of time; a child follows the call that made it. */
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

/** The rows of threads in which nothing runs; they stay the same until the thread changes. */
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
  return reader.rows.map((row) => {
    if (row.to === undefined) {
      stretch(row, now)
      if (row.waitFrom !== undefined)
        row.stretches.push({ kind: 'wait', from: row.waitFrom, to: now })
      if (row.kind === 'person') row.stretches.push({ kind: 'queue', from: row.from, to: now })
    }
    return { ...row, to: row.to ?? now }
  })
}

/** Begins and ends rows, event by event. */
class RowReader {
  readonly rows: Begun[] = []
  readonly #threadId: string
  readonly #depth: number
  readonly #calls = new Map<string, Begun>()
  readonly #models = new Map<string, Begun>()
  readonly #queued = new Map<string, Begun>()
  readonly #children = new Map<string, Begun>()
  readonly #interrupts = new Map<string, Begun>()
  #agent: string
  #stepAt: number | undefined

  constructor({ threadId, view }: ShownThread, depth: number) {
    this.#threadId = threadId
    this.#depth = depth
    this.#agent = view.agent
  }

  read(logged: LoggedEvent): void {
    const { event } = logged
    const at = Date.parse(event.at)
    switch (event.type) {
      case 'turn_start':
        this.#agent = event.agentId.replace(/\/[ab]$/, '')
        return
      case 'step_start':
        this.#stepAt = at
        return
      case 'model_requested':
        return this.#request(logged, event.logId, event.model, at)
      case 'model_answered': {
        const row = this.#models.get(event.logId)
        if (row && event.error) row.isFailed = true
        return end(row, at, 'run')
      }
      case 'session_end':
        // What was cut off by the end of the session has no event of its own.
        for (const row of [...this.#models.values(), ...this.#calls.values()]) end(row, at, 'run')
        return
      default:
        this.#readMessage(logged, at)
        this.#readCall(logged, at)
    }
  }

  #request(logged: LoggedEvent, logId: string, name: string, at: number): void {
    const row = this.#begin(logged, { kind: 'model', name, runFrom: at })
    // The time between the start of the step and the request is spent in hooks and in queues of limits.
    if (this.#stepAt !== undefined && this.#stepAt < at) {
      row.from = this.#stepAt
      row.stretches.push({ kind: 'queue', from: this.#stepAt, to: at })
    }
    this.#stepAt = undefined
    this.#models.set(logId, row)
  }

  #readMessage(logged: LoggedEvent, at: number): void {
    const { event } = logged
    if (event.type === 'message_queued' && !event.isSilent) {
      const name = event.subagentId === undefined ? 'message' : 'report of a child'
      const row = this.#begin(logged, { kind: 'person', name, select: event.message.id })
      this.#queued.set(event.queueId, row)
    }
    if (event.type === 'message_unqueued') end(this.#queued.get(event.queueId), at, 'queue')
    if (event.type !== 'message_added') return
    const { queueId } = event as { queueId?: string } // events from other sources lack it
    if (queueId !== undefined) end(this.#queued.get(queueId), at, 'queue')
    if (event.message.type !== 'assistant') return
    for (const { toolCallId: select, toolName: name } of event.message.toolCalls ?? [])
      this.#calls.set(select, this.#begin(logged, { kind: 'tool', name, select }))
  }

  #readCall(logged: LoggedEvent, at: number): void {
    const { event } = logged
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
        if (row && event.outcome !== 'success' && event.outcome !== 'retry') row.isFailed = true
        return end(row, at, 'run')
      }
      case 'interrupt_opened': {
        const row = this.#calls.get(event.interrupt.toolCallId)
        // A call that made a child is busy while the child works, so this is no wait.
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
      case 'subagent_created': {
        const call = event.toolCallId === undefined ? undefined : this.#calls.get(event.toolCallId)
        const row = call ?? this.#begin(logged, { kind: 'child', name: event.name, runFrom: at })
        row.kind = 'child'
        row.childId = event.reference
        this.#children.set(event.reference, row)
        return
      }
      case 'subagent_ended': {
        const row = this.#children.get(event.reference)
        if (row && event.outcome === 'failed') row.isFailed = true
        if (row && !this.#calls.has(row.select)) end(row, at, 'run')
        return
      }
      default:
    }
  }

  #begin({ seq, event }: LoggedEvent, row: Pick<Begun, 'kind' | 'name'> & Partial<Begun>): Begun {
    const begun: Begun = {
      key: `${this.#threadId} ${seq} ${this.rows.length}`,
      agent: this.#agent,
      threadId: this.#threadId,
      depth: this.#depth,
      select: `event ${seq} ${this.#threadId}`,
      from: Date.parse(event.at),
      stretches: [],
      isFailed: false,
      isOpen: true,
      ...row,
    }
    this.rows.push(begun)
    return begun
  }
}

/** Ends the stretch in which the row runs. */
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

/** A stretch of the clock of the timeline. Idle stretches have a small fixed width. */
export interface ClockPiece {
  readonly from: number
  readonly to: number
  /** Where the piece begins and how wide it is, in the units of the clock. */
  readonly start: number
  readonly width: number
  readonly isIdle: boolean
}

/** A clock on which nothing that is long and empty takes room. */
export interface TimelineClock {
  readonly pieces: readonly ClockPiece[]
  readonly width: number
  /** Where a time is, in the units of the clock. */
  at(time: number): number
  /** The time at a place. */
  timeAt(place: number): number
}

/** An idle stretch is folded when it is longer than this part of everything that is shown. */
const IDLE_PART = 0.08
const MIN_IDLE_MS = 1000
/** The width of a folded stretch, as a part of everything. */
const FOLD_PART = 0.035

/** Lays out the time of the rows. Time in which nothing runs is folded; waiting for a person counts as idle. */
export function clockOf(rows: readonly TimelineRow[]): TimelineClock {
  const busy = rows
    .flatMap(({ stretches, kind }) =>
      stretches.filter((one) => one.kind === 'run' || (one.kind === 'queue' && kind !== 'person')),
    )
    .toSorted((a, b) => a.from - b.from)
  const first = Math.min(...rows.slice(0, 1).map(({ from }) => from), busy[0]?.from ?? Infinity)
  const last = rows.reduce((end, { to }) => Math.max(end, to), first)
  const gaps: { from: number; to: number }[] = []
  let busyMs = 0
  let until = first
  for (const { from, to } of busy) {
    if (from > until) gaps.push({ from: until, to: from })
    if (to > until) busyMs += to - Math.max(from, until)
    until = Math.max(until, to)
  }
  if (last > until) gaps.push({ from: until, to: last })
  const least = Math.max(MIN_IDLE_MS, busyMs * IDLE_PART)
  const folded = gaps.filter(({ from, to }) => to - from > least)
  const shownMs = last - first - folded.reduce((sum, { from, to }) => sum + to - from, 0)
  const foldWidth = Math.max(shownMs, 1) * FOLD_PART
  const pieces: ClockPiece[] = []
  let [time, place] = [first, 0]
  const add = (to: number, isIdle: boolean): void => {
    if (to <= time) return
    const width = isIdle ? foldWidth : to - time
    pieces.push({ from: time, to, start: place, width, isIdle })
    place += width
    time = to
  }
  for (const gap of folded) {
    add(gap.from, false)
    add(gap.to, true)
  }
  add(last, false)
  if (pieces.length === 0) {
    pieces.push({ from: first, to: first + 1, start: 0, width: 1, isIdle: false })
    place = 1
  }
  const find = (isIn: (piece: ClockPiece) => boolean): ClockPiece => {
    let [low, high] = [0, pieces.length - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (isIn(pieces[middle]!)) high = middle
      else low = middle + 1
    }
    return pieces[low]!
  }
  return {
    pieces,
    width: place,
    at(wanted) {
      const piece = find(({ to }) => wanted <= to)
      const part = (wanted - piece.from) / (piece.to - piece.from)
      return piece.start + Math.min(1, Math.max(0, part)) * piece.width
    },
    timeAt(wanted) {
      const piece = find(({ start, width }) => wanted <= start + width)
      return piece.from + ((wanted - piece.start) / piece.width) * (piece.to - piece.from)
    },
  }
}

/** The time that a row ran, apart from the time in which it stood in a queue or waited. */
export function timesOf({ stretches }: TimelineRow): Readonly<Record<Stretch['kind'], number>> {
  const sums = { run: 0, queue: 0, wait: 0 }
  for (const { kind, from, to } of stretches) sums[kind] += to - from
  return sums
}
