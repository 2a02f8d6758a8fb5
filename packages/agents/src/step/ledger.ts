import type { MaybePromise } from '@skein/base'
import { type Message, messageToJSON, type TokenUsage } from '@skein/ai'
import { addUsage, zeroUsage } from '@skein/ai/engine'
import { awaitUnlessAborted } from '../contract/agent-error.ts'
import { isUnpriced } from '../contract/cost-condition.ts'
import { type Spending, spendingOf } from '../state/run-account.ts'
import type { AgentState } from '../state/state.ts'
import { childRequestOf } from '../state/interrupts.ts'
import type { SubagentSink } from './live-events.ts'

/** The run whose tokens and steps a ledger counts. */
export interface LedgerRun {
  /** The current state; `state.run` counts what the run itself and its ended sub-agents have used. */
  readonly state: () => AgentState
  /** What the run and its ended sub-agents have used, including sub-agents that ended within the running calls. */
  readonly settled: () => Spending
  /** Returns whether the stop condition of the run would end it at these totals. */
  readonly stops: (totals: Spending) => MaybePromise<boolean>
}

/** Connects the run of a sub-agent to the run that called it. */
export interface LedgerParent {
  readonly ledger: RunLedger
  readonly toolCallId: string
  /** Whether the stop condition of the caller (and of its callers, if they share budgets too) can end this run. */
  readonly sharesBudget: boolean
}

/** What a run, its sub-agents, their sub-agents and so on share: they are one tree of runs. */
interface Tree {
  /** A queue: reservations are decided one after the other, because a stop condition may be asynchronous. */
  turn: Promise<unknown>
  /** Called when an inference in flight has ended. */
  readonly waiting: Set<() => void>
  /**
   * For estimates of the next inference: the largest output, the largest first inference, and the totals so
   * far.
   */
  largestOutput: number
  largestFirst: number
  total: TokenUsage
}

/**
 * The ledger of one run in a tree of runs: what the run and its sub-agents have used, and what their
 * inferences in flight have reserved. A sub-agent that shares the budget of its caller starts an inference
 * only while the caller's stop condition does not hold for everything used plus everything reserved; it waits
 * if only reservations are in the way. So a tree uses at most its budget plus the inference that was reserved
 * last, as far as the reservations were estimated right: see `#estimate`.
 */
export class RunLedger {
  readonly #run: LedgerRun
  readonly #parent: LedgerParent | undefined
  readonly #tree: Tree
  /** The sub-agents that run now, by the id of their call. */
  readonly #children = new Map<string, RunLedger>()
  /** Whether an inference of the run or of its sub-agents has a cost that is not known, which no sum shows. */
  hasUnknownCost = false
  #reserved: TokenUsage | undefined
  #sink: SubagentSink | undefined
  #last: { readonly usage: TokenUsage; readonly messages: number } | undefined

  constructor(run: LedgerRun, parent?: LedgerParent) {
    this.#run = run
    this.#parent = parent
    this.#tree = parent
      ? parent.ledger.#tree
      : {
          turn: Promise.resolve(),
          waiting: new Set(),
          largestOutput: 0,
          largestFirst: 0,
          total: zeroUsage,
        }
    if (parent) parent.ledger.#children.set(parent.toolCallId, this)
  }

  /** Whether the budget of a caller can end this run, so that its inferences must be reserved. */
  get isShared(): boolean {
    return this.#parent?.sharesBudget === true
  }

  /** What the run has used, with all its sub-agents: ended, running and waiting for an answer. */
  get spent(): Spending {
    let { usage, steps } = this.#run.settled()
    const tracedCalls = new Set(this.#sink?.traces.map(({ parentToolCallId }) => parentToolCallId))
    for (const child of this.#children.values()) {
      const childSpending = child.spent
      usage = addUsage(usage, childSpending.usage)
      if (child.#parent?.sharesBudget) steps += childSpending.steps
    }
    for (const { toolCallId, request } of this.#run.state().suspension?.deferred ?? []) {
      const child = childRequestOf(request)
      if (!child || this.#children.has(toolCallId) || tracedCalls.has(toolCallId)) continue
      const spent = spendingOf(child.state)
      usage = addUsage(usage, spent.usage)
      if (child.sharesBudget) steps += spent.steps
    }
    return { usage, steps }
  }

  /** What inferences in flight have reserved, of the run and its sub-agents. */
  get #inFlight(): TokenUsage {
    let sum = this.#reserved ?? zeroUsage
    for (const child of this.#children.values()) sum = addUsage(sum, child.#inFlight)
    return sum
  }

  /** True when a caller whose budget this run shares would stop now. */
  async isUsedUp(): Promise<boolean> {
    for (const ledger of this.#sharedCallers()) if (await ledger.wouldStop()) return true
    return false
  }

  /** True when the stop condition of the run holds for what it has used, plus `more`. */
  async wouldStop(more: TokenUsage = zeroUsage): Promise<boolean> {
    const { usage, steps } = this.spent
    return this.#run.stops({ usage: addUsage(usage, more), steps })
  }

  /**
   * Reserves the tokens of an inference. Returns false if the budget of a caller is used up. If only the
   * reservations of other runs exceed the budget, waits until one of their inferences has ended.
   */
  async reserve(messages: readonly Message[], signal: AbortSignal | undefined): Promise<boolean> {
    const callers = this.#sharedCallers()
    if (callers.length === 0) return true
    for (;;) {
      const change = new Promise<void>((resolve) => this.#tree.waiting.add(resolve))
      const nextDecision = this.#tree.turn.then(() => this.#decide(callers, messages))
      this.#tree.turn = nextDecision.catch(() => {}) // an error of a stop condition fails only the run that asked
      const decision = await awaitUnlessAborted(nextDecision, signal)
      if (decision !== 'wait') return decision === 'go'
      await awaitUnlessAborted(change, signal)
    }
  }

  async #decide(
    callers: readonly RunLedger[],
    messages: readonly Message[],
  ): Promise<'go' | 'wait' | 'stop'> {
    for (const ledger of callers) {
      const reservation = ledger.#inFlight
      if (!(await ledger.wouldStop(reservation))) continue
      const isAlone = reservation.totalTokens === 0
      return isAlone || (await ledger.wouldStop()) ? 'stop' : 'wait'
    }
    this.#reserved = this.#estimate(messages)
    return 'go'
  }

  /**
   * Estimates the next inference: the input and output of the run's last inference, plus the messages since
   * then at four characters a token, plus the largest output in the tree so far; the cost is the tree's
   * average. The first inference of a run reserves at least as much as the largest first inference of another
   * run has used.
   */
  #estimate(messages: readonly Message[]): TokenUsage {
    const { largestOutput, largestFirst, total } = this.#tree
    const { usage = zeroUsage, messages: known = 0 } = this.#last ?? {}
    const newTokens = messages.slice(known).reduce((sum, message) => sum + lengthOf(message) / 4, 0)
    const inputTokens = usage.inputTokens + usage.outputTokens + Math.ceil(newTokens)
    // At least one token, because a reservation of zero would look like no reservation.
    const least = this.#last ? 1 : Math.max(1, largestFirst)
    const totalTokens = Math.max(least, inputTokens + largestOutput)
    const { costUsd } = total
    return {
      ...zeroUsage,
      inputTokens,
      outputTokens: largestOutput,
      totalTokens,
      costUsd: costUsd && (costUsd / total.totalTokens) * totalTokens,
    }
  }

  /** Replaces the reservation by what the inference has used; the run itself adds that to its account. */
  settle(usage: TokenUsage, messages: number): void {
    const tree = this.#tree
    if (!this.#last) tree.largestFirst = Math.max(tree.largestFirst, usage.totalTokens)
    this.#last = { usage, messages }
    tree.largestOutput = Math.max(tree.largestOutput, usage.outputTokens)
    tree.total = addUsage(tree.total, usage)
    if (isUnpriced(usage)) this.#noteUnknownCost()
    this.release()
  }

  #noteUnknownCost(): void {
    this.hasUnknownCost = true
    if (this.#parent) this.#parent.ledger.#noteUnknownCost()
  }

  /** Drops the reservation of an inference that has ended, and lets the runs that wait decide again. */
  release(): void {
    if (!this.#reserved) return
    this.#reserved = undefined
    const waiting = [...this.#tree.waiting]
    this.#tree.waiting.clear()
    for (const wake of waiting) wake()
  }

  /** Counts the sub-agents of a batch of calls until `endCalls`. */
  beginCalls(sink: SubagentSink): void {
    this.#sink = sink
  }

  /** Forgets the sub-agents of a batch of calls, once the account of the run contains their tokens. */
  endCalls(): void {
    this.#sink = undefined
    this.#children.clear()
  }

  /**
   * Stops counting a sub-agent that has ended: from now on its caller counts the tokens in its trace, and its
   * steps if it shares the budget.
   */
  close(): void {
    const { ledger, toolCallId, sharesBudget } = this.#parent ?? {}
    if (!ledger || toolCallId === undefined || ledger.#children.get(toolCallId) !== this) return
    ledger.#children.delete(toolCallId)
    if (sharesBudget && ledger.#sink) ledger.#sink.steps += this.spent.steps
  }

  #sharedCallers(): RunLedger[] {
    const callers: RunLedger[] = []
    for (let at = this.#parent; at?.sharesBudget; at = at.ledger.#parent) callers.push(at.ledger)
    return callers
  }
}

const lengths = new WeakMap<Message, number>()

function lengthOf(message: Message): number {
  const cachedLength = lengths.get(message)
  if (cachedLength !== undefined) return cachedLength
  let length = 0
  try {
    length = JSON.stringify(messageToJSON(message)).length
  } catch {
    // Saving the state reports a message that JSON cannot express; here the message only counts as empty.
  }
  lengths.set(message, length)
  return length
}
