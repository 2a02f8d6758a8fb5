import { threadView } from '@skein/runtime/view'
import type { RecordedThread, RecordedUsage } from './recorded-thread.ts'
import type { FactCall, FactEvidence, FactGate, FactMessage, RunFacts } from './run-facts.ts'

/** Returns the facts of a run, for checks and comparisons. */
export function factsOf(thread: RecordedThread): RunFacts {
  const tree = [...threadTree(thread)]
  const end = thread.events.findLast(({ event }) => event.type === 'session_end')?.event
  const ended = end?.type === 'session_end' ? end : undefined
  const messages = messagesOf(thread)
  const usage = sumOf(tree)
  const [first, last] = [thread.events[0]?.event.at, thread.events.at(-1)?.event.at]
  return {
    threadId: thread.threadId,
    agent: thread.agent,
    end: ended && { outcome: ended.outcome, reason: ended.reason },
    text: ended?.message ?? messages.findLast(({ from }) => from === 'agent')?.text ?? '',
    data: ended?.data,
    messages,
    calls: tree.flatMap(({ threadId, calls }) =>
      calls.map((call): FactCall => ({ ...call, threadId })),
    ),
    gates: tree.flatMap(gatesOf),
    evidence: tree.flatMap(evidenceOf),
    usage,
    costUsd: usage.costUsd,
    steps: tree.reduce(
      (sum, { requests }) => sum + requests.filter(({ answer }) => answer).length,
      0,
    ),
    durationMs: Date.parse(last ?? '') - Date.parse(first ?? '') || 0,
    modelMs: tree
      .flatMap(({ requests }) => requests)
      .reduce((sum, { answer }) => sum + (answer?.durationMs ?? 0), 0),
  }
}

/** A thread and its descendants, each before its children. */
export function* threadTree(thread: RecordedThread): Iterable<RecordedThread> {
  yield thread
  for (const child of thread.children) yield* threadTree(child)
}

function messagesOf({ threadId, events }: RecordedThread): readonly FactMessage[] {
  return threadView(events).items.flatMap((item) => {
    if (item.type !== 'message') return []
    const { id, at, from, text } = item
    return [{ id, at, from, text, threadId }]
  })
}

function gatesOf({ threadId, events }: RecordedThread): FactGate[] {
  return events.flatMap(({ event }) =>
    event.type === 'gate_decided'
      ? [{ threadId, gate: event.gate, result: event.decision, toolCallId: event.toolCallId }]
      : [],
  )
}

function evidenceOf({ threadId, events }: RecordedThread): FactEvidence[] {
  return events.flatMap(({ event }) =>
    event.type === 'evidence_added'
      ? [{ threadId, evidenceId: event.evidenceId, kind: event.kind, toolCallId: event.toolCallId }]
      : [],
  )
}

function sumOf(tree: readonly RecordedThread[]): RecordedUsage {
  let sum: RecordedUsage = noUsage
  for (const { requests } of tree)
    for (const { answer } of requests) if (answer?.usage) sum = addSpent(sum, answer.usage)
  return sum
}

/** The start of a sum. */
export const noUsage: RecordedUsage = {
  inputTokens: 0,
  outputTokens: 0,
  cachedTokens: 0,
  costUsd: 0,
}

/** Adds two usages; the cost is unknown if one of the two is. */
export function addSpent(a: RecordedUsage, b: RecordedUsage): RecordedUsage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    costUsd: a.costUsd === null || b.costUsd === null ? null : a.costUsd + b.costUsd,
  }
}
