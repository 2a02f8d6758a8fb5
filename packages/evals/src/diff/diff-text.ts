import type { RunDiff, RunStep, StepChange, StepPair } from './run-diff.ts'

/** The difference of two runs for a terminal: `-` before, `+` after, as in a patch. */
export function diffText({ steps, deltas, firstDivergence, isSame }: RunDiff): string {
  if (isSame) return 'The runs are the same.'
  const lines = steps.flatMap(pairLines)
  return [
    `The runs differ from step ${(firstDivergence ?? 0) + 1} on.`,
    ...lines,
    deltaLine(deltas),
  ].join('\n')
}

/** The difference of two runs for a pull request. */
export function diffMarkdown(diff: RunDiff): string {
  if (diff.isSame) return 'The runs are the same.'
  const { steps, deltas, firstDivergence } = diff
  const lines = steps.flatMap(pairLines)
  // A fence that is longer than any in the text cannot be closed by it.
  const longest = Math.max(
    2,
    ...lines.flatMap((line) => [...line.matchAll(/`+/g)].map(([ticks]) => ticks.length)),
  )
  const fence = '`'.repeat(longest + 1)
  return [
    `The runs differ from step ${(firstDivergence ?? 0) + 1} on.`,
    '',
    `${fence}diff`,
    ...lines,
    fence,
    '',
    deltaLine(deltas),
  ].join('\n')
}

function pairLines({ before, after, isSame, changes }: StepPair): string[] {
  if (isSame && before) return [`  ${stepLine(before)}`]
  return [
    ...(before ? [`- ${stepLine(before)}`] : []),
    ...(after ? [`+ ${stepLine(after)}`] : []),
    ...changes.flatMap(changeLines),
  ]
}

function stepLine(step: RunStep): string {
  if (step.type === 'message') return `${step.from}: ${oneLine(step.text)}`
  const { toolName, arguments: args, outcome = '', result } = step
  const told = result === undefined ? '' : ` → ${oneLine(JSON.stringify(result))}`
  return `${toolName}(${oneLine(JSON.stringify(args))}) ${outcome}${told}`
}

function changeLines(change: StepChange): string[] {
  if (change.type === 'text') return []
  const { path, before, after } = change
  return [
    `    ${path}: ${JSON.stringify(before) ?? 'absent'} → ${JSON.stringify(after) ?? 'absent'}`,
  ]
}

function deltaLine({
  inputTokens,
  outputTokens,
  costUsd,
  calls,
  modelMs,
  gates,
  evidence,
}: RunDiff['deltas']): string {
  const cost =
    costUsd === null ? 'unknown cost' : `${costUsd < 0 ? '-' : '+'}$${Math.abs(costUsd).toFixed(4)}`
  const parts = [
    `${signed(inputTokens + outputTokens)} tokens`,
    cost,
    `${signed(calls)} calls`,
    `${signed(modelMs)} ms of models`,
  ]
  const gone = [...gates.onlyBefore, ...evidence.onlyBefore].map((entry) => `-${entry}`)
  const added = [...gates.onlyAfter, ...evidence.onlyAfter].map((entry) => `+${entry}`)
  return [parts.join(', '), ...gone, ...added].join('; ')
}

function signed(count: number): string {
  return count < 0 ? String(count) : `+${count}`
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ')
  return line.length > 200 ? `${line.slice(0, 200)}…` : line
}
