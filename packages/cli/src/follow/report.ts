import type { SessionResult, WaitingItem } from '@skein/runtime'
import { ExitCode, exitCodeOf } from '../exit-code.ts'
import type { Output } from '../output.ts'
import { formatDuration } from './duration.ts'
import type { Followed } from './follow.ts'

/** Says what a run waits for or how to go on, and ends with one line about it. Answers the exit code. */
export function report(followed: Followed | undefined, output: Output): ExitCode {
  if (!followed) return ExitCode.Done
  const { result, tally } = followed
  const code = codeOf(followed)
  for (const item of result.waiting) for (const line of waitingLines(item)) output.say(line)
  if (result.outcome === 'stopped')
    output.say(`Go on with: skein thread resume ${result.thread.id}`)
  output.say(
    [
      output.paint(
        code === ExitCode.Done ? 'green' : 'yellow',
        statusOf(result, followed.parkedBy),
      ),
      `${tally.turns} ${tally.turns === 1 ? 'turn' : 'turns'}`,
      `${tally.tokens} tokens`,
      `cost ${tally.cost}`,
      formatDuration(tally.elapsedMs),
      `thread ${result.thread.id}`,
    ].join(' · '),
  )
  return code
}

/** A run that ended by itself while it was being parked has ended. */
function codeOf({ result, parkedBy }: Followed): ExitCode {
  if (result.outcome === 'stopped' && parkedBy === 'timeout') return ExitCode.TimedOut
  return exitCodeOf(result)
}

function statusOf({ outcome, reason }: SessionResult, parkedBy: Followed['parkedBy']): string {
  switch (outcome) {
    case 'completed':
      return 'done'
    case 'waiting':
      return 'waiting for a person'
    case 'stopped':
      return parkedBy === 'timeout' ? 'timed out, parked' : 'parked'
    case 'terminated':
      return 'terminated'
    case 'failed':
      return `failed (${reason})`
  }
}

/** What somebody has to decide, and the commands for it. */
export function waitingLines(item: WaitingItem): string[] {
  const { threadId, interruptId, toolName, risk, kind, path } = item
  const call = `${toolName} ${JSON.stringify(item.arguments)}`
  const from = path.length > 1 ? `${path.join(' › ')}: ` : ''
  if (kind === 'input') return [`waiting for an answer: ${from}${call}`]
  return [
    `waiting for approval: ${from}${call}${risk === undefined ? '' : ` (${risk})`}`,
    `  skein approve ${threadId} ${interruptId}`,
    `  skein deny ${threadId} ${interruptId} --reason "…"`,
  ]
}
