import { type CallPorts, executeTools } from '@skein/ai'
import type { DrainContext } from '../context/drain-context.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import { type Entry, isWaiting } from '../state/kernel-state.ts'
import { orderedCalls } from '../state/calls-to-run.ts'
import { cutSignal, readCut } from './cut-signal.ts'
import { CallSettledError, RunningCall } from './running-call.ts'
import { settledCalls } from './settled-calls.ts'

/**
 * Runs the calls of a message that have no outcome. `executeTools` of `@skein/ai` runs them. Each call gets a
 * `RunningCall`, which has the call judged (gate), commits its start and its end (journal), and runs its hooks.
 */
export async function runCalls(
  context: DrainContext,
  side: ResolvedSide,
  entry: Entry,
): Promise<void> {
  const { environment } = context
  const outcomes = await settledCalls(context, side, entry)
  const { signal, end } = cutSignal(context)
  const events = executeTools({
    calls: orderedCalls(context.state, side, entry),
    tools: context.tools(side),
    settled: outcomes,
    mode: side.prompt.definition.parallelToolCalls ? 'parallel' : 'sequential',
    open: (call) => new RunningCall(context, side, call, signal),
    strategy: { stopGraceMs: environment.limits.stopGraceMs },
    clock: environment.clock,
    timers: environment.callTimers,
    signal,
  })
  try {
    for (let batch = await events.next(); !batch.done;) batch = await events.next()
    await askAhead(context, side, entry)
  } catch (error) {
    if (!(error instanceof CallSettledError) && !signal.aborted) throw error
  } finally {
    end()
  }
  if (signal.aborted) await readCut(context)
}

/**
 * Asks for the approval of calls that are held back only by earlier calls which wait for an approval themselves, so
 * that a person can decide about all of them together. None of them runs before its turn.
 */
async function askAhead(context: DrainContext, side: ResolvedSide, entry: Entry): Promise<void> {
  const { environment, state, signal } = context
  for (const one of entry.calls) {
    if (one.outcome || isWaiting(state, one)) continue
    const running = new RunningCall(context, side, one.call, signal)
    if (!running.mayAskAhead(entry, one)) return
    const open = (): CallPorts => ({
      ...running,
      gate: { admit: (call) => running.askAhead(call) },
      review: (call, outcome) => running.review(call, outcome),
    })
    const tools = context.tools(side)
    const events = executeTools({
      calls: [one.call],
      tools,
      open,
      clock: environment.clock,
      signal,
    })
    for (let batch = await events.next(); !batch.done;) batch = await events.next()
  }
}
