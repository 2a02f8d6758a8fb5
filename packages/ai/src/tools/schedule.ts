import type { Tool, ToolCall, ToolOutcome } from '../contract/tool.ts'
import type { Warning } from '../contract/turn.ts'

/** The settings of the schedule of one batch. */
interface ScheduleInput {
  readonly calls: readonly ToolCall[]
  readonly tools: ReadonlyMap<string, Tool>
  readonly mode: 'parallel' | 'sequential'
  readonly maxConcurrency: number
  /** Tools that succeeded earlier in the conversation. */
  readonly succeeded: ReadonlySet<string>
}

type Status = 'pending' | 'running' | 'settled' | 'blocked'

/**
 * Decides which calls may start now (UAP §8.5, §8.6). Calls are identified by their position. Sequential
 * calls run first, one at a time in call order; all others may overlap; `dependsOn` and `after` override both
 * rules.
 */
export class Schedule {
  readonly warnings: Warning[] = []
  readonly #input: ScheduleInput
  readonly #status: Status[]
  readonly #outcomes: (ToolOutcome | undefined)[]
  /** For each call, the positions of the calls that must settle before it. */
  readonly #waitsFor: readonly ReadonlySet<number>[]
  readonly #isOrdered: boolean
  #hasCycle = false
  /** The number of calls that have not started, and of those that are neither settled nor blocked. */
  #pendingCount: number
  #openCount: number

  constructor(input: ScheduleInput) {
    this.#input = input
    this.#status = input.calls.map(() => 'pending')
    this.#outcomes = input.calls.map(() => undefined)
    this.#waitsFor = this.#edges()
    this.#isOrdered = input.calls.some(
      (_, position) => this.#isExclusive(position) || this.#waitsFor[position]!.size > 0,
    )
    this.#pendingCount = input.calls.length
    this.#openCount = input.calls.length
  }

  /** Returns the positions to start now, in call order. Each position is returned once. */
  next(): number[] {
    if (this.#pendingCount === 0) return []
    const all = this.#pickAll()
    if (all) return all
    const start: number[] = []
    for (;;) {
      const position = this.#pick()
      if (position === undefined) return start
      this.#begin(position)
      start.push(position)
    }
  }

  /** Starts all calls together if none has to wait, the common case; this avoids quadratic work for many calls. */
  #pickAll(): number[] | undefined {
    const { calls, maxConcurrency } = this.#input
    const isFree =
      this.#pendingCount === calls.length && calls.length <= maxConcurrency && !this.#isOrdered
    if (!isFree) return undefined
    for (let position = 0; position < calls.length; position++) this.#begin(position)
    return calls.map((_, position) => position)
  }

  #begin(position: number): void {
    this.#status[position] = 'running'
    this.#pendingCount--
  }

  settle(position: number, outcome: ToolOutcome): void {
    this.#outcomes[position] = outcome
    if (this.#status[position] === 'pending') this.#pendingCount--
    if (this.#status[position] === 'pending' || this.#status[position] === 'running')
      this.#openCount--
    this.#status[position] = 'settled'
  }

  /** True when no call runs and none can start; the remaining calls wait for a deferred call. */
  get isOver(): boolean {
    return this.#openCount === 0
  }

  /** Returns why this call must not run, if a tool it depends on has not succeeded (UAP §8.5). */
  missingDependency(position: number): string | undefined {
    for (const name of this.#dependencies(position)) {
      const inBatch = this.#callsTo(name, position)
      // In a dependency cycle the other call may have no outcome yet; that call is then treated as successful.
      if (inBatch.some((other) => (this.#outcomes[other]?.type ?? 'done') !== 'done'))
        return `It depends on "${name}", whose call in the same message did not succeed.`
      if (inBatch.length === 0 && !this.#input.succeeded.has(name))
        return `It depends on "${name}", which has not run successfully yet.`
    }
    return undefined
  }

  #pick(): number | undefined {
    this.#blockBehindDeferred()
    const running = this.#count('running')
    if (running >= this.#input.maxConcurrency) return undefined
    const pending = this.#positions('pending')
    if (pending.length === 0) return undefined
    if (this.#hasCycle) return running === 0 ? pending[0] : undefined
    const exclusive = pending.filter((position) => this.#isExclusive(position))
    if (exclusive.length > 0 || this.#runsExclusive()) return this.#pickOrdered(exclusive, running)
    return this.#firstReady(pending) ?? this.#breakCycle(running, pending)
  }

  /**
   * Picks the next call while exclusive calls (those that must run alone) are left: only exclusive calls, and
   * the calls they depend on, may start.
   */
  #pickOrdered(exclusive: readonly number[], running: number): number | undefined {
    if (this.#runsExclusive()) return undefined
    const ready = this.#firstReady(exclusive)
    if (ready !== undefined) return running === 0 ? ready : undefined
    const ancestors = this.#ancestors(exclusive).filter((position) => !this.#isExclusive(position))
    return this.#firstReady(ancestors) ?? this.#breakCycle(running, this.#positions('pending'))
  }

  #firstReady(positions: readonly number[]): number | undefined {
    return positions.find(
      (position) => this.#status[position] === 'pending' && this.#isReady(position),
    )
  }

  /**
   * Returns the first pending call when the pending calls wait for each other and none is running. From then
   * on they run one by one in call order.
   */
  #breakCycle(running: number, pending: readonly number[]): number | undefined {
    if (running > 0) return undefined
    this.#hasCycle = true
    const names = pending.map((position) => this.#input.calls[position]!.toolName)
    this.warnings.push({
      code: 'dependency_cycle',
      message: `The calls to ${names.join(', ')} wait for each other; they ran one by one in call order.`,
    })
    return pending[0]
  }

  /** Marks calls that wait for a deferred call as blocked; they stay open, without an outcome. */
  #blockBehindDeferred(): void {
    for (let hasChange = true; hasChange;) {
      hasChange = false
      for (const position of this.#positions('pending')) {
        if (![...this.#waitsFor[position]!].some((other) => this.#isOpen(other))) continue
        this.#status[position] = 'blocked'
        this.#pendingCount--
        this.#openCount--
        hasChange = true
      }
    }
  }

  #isOpen(position: number): boolean {
    return this.#status[position] === 'blocked' || this.#outcomes[position]?.type === 'deferred'
  }

  #isReady(position: number): boolean {
    for (const other of this.#waitsFor[position]!)
      if (this.#status[other] !== 'settled') return false
    return true
  }

  #isExclusive(position: number): boolean {
    if (this.#input.mode === 'sequential') return true
    return this.#tool(position)?.sequential === true
  }

  #runsExclusive(): boolean {
    return this.#positions('running').some((position) => this.#isExclusive(position))
  }

  #ancestors(positions: readonly number[]): number[] {
    const visitedCalls = new Set<number>()
    const open = [...positions]
    for (let position = open.pop(); position !== undefined; position = open.pop())
      for (const other of this.#waitsFor[position]!)
        if (!visitedCalls.has(other)) {
          visitedCalls.add(other)
          open.push(other)
        }
    return [...visitedCalls].sort((a, b) => a - b)
  }

  #edges(): ReadonlySet<number>[] {
    const byId = new Map(this.#input.calls.map((call, position) => [call.toolCallId, position]))
    return this.#input.calls.map((call, position) => {
      const edges = new Set<number>()
      for (const name of this.#dependencies(position, this.warnings))
        for (const other of this.#callsTo(name, position)) edges.add(other)
      // An unknown id in `after` becomes an edge to the call itself, which is deleted below.
      for (const id of call.after ?? []) edges.add(byId.get(id) ?? position)
      edges.delete(position)
      return edges
    })
  }

  /** Returns the names in `dependsOn` that are known tools; unknown names are reported once and ignored. */
  #dependencies(position: number, warnings?: Warning[]): readonly string[] {
    const tool = this.#tool(position)
    return (tool?.dependsOn ?? []).filter((name) => {
      if (this.#input.tools.has(name)) return true
      warnings?.push({
        code: 'unknown_dependency',
        message: `The tool "${tool?.name}" depends on "${name}", which is not one of the tools.`,
      })
      return false
    })
  }

  #callsTo(name: string, except: number): number[] {
    return this.#input.calls.flatMap((call, position) =>
      call.toolName === name && position !== except ? [position] : [],
    )
  }

  #tool(position: number): Tool | undefined {
    return this.#input.tools.get(this.#input.calls[position]!.toolName)
  }

  #positions(status: Status): number[] {
    return this.#status.flatMap((one, position) => (one === status ? [position] : []))
  }

  #count(status: Status): number {
    return this.#positions(status).length
  }
}
