import type { Tool, ToolCall, ToolOutcome } from '../contract/tool.ts'
import type { Warning } from '../contract/turn.ts'

/** What decides when the calls of one batch may start. */
export interface ScheduleInput {
  readonly calls: readonly ToolCall[]
  readonly tools: ReadonlyMap<string, Tool>
  readonly mode: 'parallel' | 'sequential'
  readonly maxConcurrency: number
  /** Tools that succeeded earlier in the conversation. */
  readonly succeeded: ReadonlySet<string>
}

type Status = 'pending' | 'running' | 'settled' | 'blocked'

/**
 * Says which calls may start now (UAP §8.5, §8.6). Calls are named by their position. Sequential
 * calls go first, one at a time in call order; the rest overlap; `dependsOn` and `after` override.
 */
export class Schedule {
  readonly warnings: Warning[] = []
  readonly #input: ScheduleInput
  readonly #status: Status[]
  readonly #outcomes: (ToolOutcome | undefined)[]
  /** Positions that must settle first. */
  readonly #waitsFor: readonly ReadonlySet<number>[]
  #hasCycle = false

  constructor(input: ScheduleInput) {
    this.#input = input
    this.#status = input.calls.map(() => 'pending')
    this.#outcomes = input.calls.map(() => undefined)
    this.#waitsFor = this.#edges()
  }

  /** Positions to start now, in call order. Each is given out once. */
  next(): number[] {
    const start: number[] = []
    for (;;) {
      const position = this.#pick()
      if (position === undefined) return start
      this.#status[position] = 'running'
      start.push(position)
    }
  }

  settle(position: number, outcome: ToolOutcome): void {
    this.#outcomes[position] = outcome
    this.#status[position] = 'settled'
  }

  /** Nothing runs and nothing more can: what is left waits for a deferred call. */
  get isOver(): boolean {
    return this.#status.every((status) => status === 'settled' || status === 'blocked')
  }

  /** Why this call must not run, if a tool it depends on has not succeeded (UAP §8.5). */
  missingDependency(position: number): string | undefined {
    for (const name of this.#dependencies(position)) {
      const inBatch = this.#callsTo(name, position)
      // In a cycle a dependency may have no outcome yet; it is then not waited for.
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

  /** While exclusive calls are left, only they start, and whatever they depend on. */
  #pickOrdered(exclusive: readonly number[], running: number): number | undefined {
    if (this.#runsExclusive()) return undefined
    const ready = this.#firstReady(exclusive)
    if (ready !== undefined) return running === 0 ? ready : undefined
    const needed = this.#ancestors(exclusive).filter((position) => !this.#isExclusive(position))
    return this.#firstReady(needed) ?? this.#breakCycle(running, this.#positions('pending'))
  }

  #firstReady(positions: readonly number[]): number | undefined {
    return positions.find(
      (position) => this.#status[position] === 'pending' && this.#isReady(position),
    )
  }

  /** The calls of a cycle, and those behind it, run one by one in call order. */
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

  /** Calls that wait for a deferred one stay open, without an outcome. */
  #blockBehindDeferred(): void {
    for (let changed = true; changed;) {
      changed = false
      for (const position of this.#positions('pending')) {
        if (![...this.#waitsFor[position]!].some((other) => this.#isOpen(other))) continue
        this.#status[position] = 'blocked'
        changed = true
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
    const found = new Set<number>()
    const open = [...positions]
    for (let position = open.pop(); position !== undefined; position = open.pop())
      for (const other of this.#waitsFor[position]!)
        if (!found.has(other)) {
          found.add(other)
          open.push(other)
        }
    return [...found].sort((a, b) => a - b)
  }

  #edges(): ReadonlySet<number>[] {
    const byId = new Map(this.#input.calls.map((call, position) => [call.toolCallId, position]))
    return this.#input.calls.map((call, position) => {
      const edges = new Set<number>()
      for (const name of this.#dependencies(position, this.warnings))
        for (const other of this.#callsTo(name, position)) edges.add(other)
      // Unknown ids in `after` are ignored.
      for (const id of call.after ?? []) edges.add(byId.get(id) ?? position)
      edges.delete(position)
      return edges
    })
  }

  /** Names in `dependsOn` that are tools at all; others are reported once and ignored. */
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
