import { isObject, isSameJson, type JsonValue } from '@skein/base'
import { alignSteps, threadView } from '@skein/runtime/view'
import { factsOf } from '../recorded/facts-of.ts'
import type { RecordedThread } from '../recorded/recorded-thread.ts'
import type { RunFacts } from '../recorded/run-facts.ts'
import type {
  CountDelta,
  RunDeltas,
  RunDiff,
  RunStep,
  StepChange,
  StepPair,
  TextPiece,
} from './run-diff.ts'

/** Compares two runs, e.g. a recorded thread and its replay. */
export function diffRuns(before: RecordedThread, after: RecordedThread): RunDiff {
  const steps = alignSteps(stepsOf(before), stepsOf(after)).map((pair): StepPair => ({
    ...pair,
    changes: pair.isSame ? [] : changesOf(pair),
  }))
  const first = steps.findIndex(({ isSame }) => !isSame)
  return {
    before: before.threadId,
    after: after.threadId,
    isSame: first < 0,
    firstDivergence: first < 0 ? undefined : first,
    steps,
    deltas: deltasOf(factsOf(before), factsOf(after)),
  }
}

/** The messages and calls of a thread in order. */
export function stepsOf({ events, calls }: RecordedThread): readonly RunStep[] {
  const approvals = new Map(calls.map(({ toolCallId, approval }) => [toolCallId, approval?.type]))
  return threadView(events).items.flatMap((item): RunStep[] => {
    if (item.type === 'message') return [{ type: 'message', from: item.from, text: item.text }]
    if (item.type !== 'call') return []
    const { toolName, arguments: args, state, result, id } = item
    return [
      {
        type: 'call',
        toolName,
        arguments: args as JsonValue, // the log is JSON
        outcome: state,
        result: result as JsonValue | undefined,
        approval: approvals.get(id),
      },
    ]
  })
}

function changesOf({ before, after }: Pick<StepPair, 'before' | 'after'>): StepChange[] {
  if (before?.type === 'message' && after?.type === 'message')
    return [{ type: 'text', parts: textParts(before.text, after.text) }]
  if (before?.type !== 'call' || after?.type !== 'call') return []
  return (['arguments', 'outcome', 'result', 'approval'] as const).flatMap((name) => [
    ...jsonChanges(before[name], after[name], `/${name}`),
  ])
}

/** Compares two texts by words. */
export function textParts(before: string, after: string): readonly TextPiece[] {
  const parts: { in: TextPiece['in']; text: string }[] = []
  const add = (place: TextPiece['in'], text: string): void => {
    const last = parts.at(-1)
    if (last?.in === place) last.text += text
    else parts.push({ in: place, text })
  }
  for (const { before: left, after: right, isSame } of alignSteps(
    wordsOf(before),
    wordsOf(after),
  )) {
    if (isSame && left !== undefined) add('both', left)
    else {
      if (left !== undefined) add('before', left)
      if (right !== undefined) add('after', right)
    }
  }
  return parts
}

function wordsOf(text: string): readonly string[] {
  return text.match(/\s+|\S+/g) ?? []
}

/** The paths at which two values differ. */
export function* jsonChanges(
  before: JsonValue | undefined,
  after: JsonValue | undefined,
  path: string,
): Generator<Extract<StepChange, { type: 'json' }>> {
  if (
    before === after ||
    (before !== undefined && after !== undefined && isSameJson(before, after))
  )
    return
  if (isObject(before) && isObject(after) && Array.isArray(before) === Array.isArray(after)) {
    const [left, right] = [before as Record<string, JsonValue>, after as Record<string, JsonValue>]
    for (const key of new Set([...Object.keys(left), ...Object.keys(right)]))
      yield* jsonChanges(
        left[key],
        right[key],
        `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`,
      )
    return
  }
  yield { type: 'json', path, before, after }
}

function deltasOf(before: RunFacts, after: RunFacts): RunDeltas {
  const cost = (facts: RunFacts): number => facts.costUsd ?? Number.NaN
  const costUsd = cost(after) - cost(before)
  return {
    inputTokens: after.usage.inputTokens - before.usage.inputTokens,
    outputTokens: after.usage.outputTokens - before.usage.outputTokens,
    costUsd: Number.isNaN(costUsd) ? null : costUsd,
    steps: after.steps - before.steps,
    calls: after.calls.length - before.calls.length,
    durationMs: after.durationMs - before.durationMs,
    modelMs: after.modelMs - before.modelMs,
    gates: onlyIn(
      before.gates.map(({ gate, result }) => `${gate}: ${result}`),
      after.gates.map(({ gate, result }) => `${gate}: ${result}`),
    ),
    evidence: onlyIn(
      before.evidence.map(({ kind }) => kind),
      after.evidence.map(({ kind }) => kind),
    ),
  }
}

/** What only one of two lists has, entry by entry. */
function onlyIn(before: readonly string[], after: readonly string[]): CountDelta {
  const left = [...before]
  const onlyAfter = after.filter((entry) => {
    const index = left.indexOf(entry)
    if (index < 0) return true
    left.splice(index, 1)
    return false
  })
  return { onlyBefore: left, onlyAfter }
}
