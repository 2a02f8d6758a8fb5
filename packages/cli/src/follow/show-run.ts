import { isPlainObject } from '@skein/base'
import { callText } from '@skein/base/safe-text'
import type { SessionResult, ThreadInfo, WaitingItem } from '@skein/runtime'
import type { Client } from '@skein/runtime/client'
import { ExitCode, usageError } from '../terminal/command.ts'
import { costText, formatDuration, lineText, type Output } from '../terminal/output.ts'
import { follow, type Followed } from './follow.ts'
import { createView, type RunViewOptions } from './run-view.ts'

/** How a run is shown, and from which event on. */
export interface ShowOptions extends RunViewOptions {
  readonly timeoutMs?: number
  /** The thread before the run; only later events are shown. Without it, all events are shown. */
  readonly before?: ThreadInfo
  /** The position in the stream where an earlier turn ended. */
  readonly after?: string
}

/** Shows the events of a thread until it rests or waits for a person, then a summary of the run. */
export async function showRun(
  client: Client,
  thread: Pick<ThreadInfo, 'id' | 'agent'>,
  output: Output,
  options: ShowOptions,
): Promise<{ readonly code: ExitCode; readonly followed: Followed | undefined }> {
  const { before, after = before && String(before.seq), timeoutMs } = options
  const agents = await client.agents.list()
  const isDialogue = agents.some(({ name, type }) => name === thread.agent && type === 'dual_ai')
  const view = createView(output, { ...options, isDialogue })
  const sinceMs = before && Date.parse(before.updatedAt)
  const threadId = thread.id
  const followed = await follow({ client, threadId, view, output, timeoutMs, after, sinceMs })
  if (!followed) return { code: ExitCode.Done, followed }
  view.end(followed.result)
  return { code: summarize(followed, output), followed }
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/**
 * Converts `--timeout` to milliseconds: `500ms`, `30s`, `5m`, `1h`; a number alone means seconds. Call it
 * before connecting, so that an invalid time is refused before anything has happened.
 */
export function timeoutOf({ timeout }: { readonly timeout?: string }): number | undefined {
  if (timeout === undefined) return undefined
  const [, amount, unit = 's'] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(timeout) ?? []
  if (amount === undefined)
    throw usageError(`--timeout takes a time, not "${timeout}".`, 'E.g. 500ms, 30s, 5m.')
  return Number(amount) * UNITS[unit]!
}

/** Prints the calls that wait or how to continue, then one line about the run. Returns the exit code. */
function summarize({ result, tally, parkedBy }: Followed, output: Output): ExitCode {
  const { code, status } = endOf(result, parkedBy)
  for (const item of result.waiting) for (const line of waitingLines(item)) output.say(line)
  if (result.outcome === 'stopped')
    output.say(`Continue with: skein thread resume ${result.thread.id}`)
  output.say(
    [
      output.paint(code === ExitCode.Done ? 'green' : 'yellow', status),
      `${tally.turns} ${tally.turns === 1 ? 'turn' : 'turns'}`,
      `${tally.tokens} tokens`,
      costText(tally.costUsd),
      formatDuration(tally.elapsedMs),
      `thread ${result.thread.id}`,
    ].join(' · '),
  )
  return code
}

const LIMITS = new Set(['budget_exceeded', 'max_side_steps', 'max_session_turns', 'max_handoffs'])
const REFUSALS = new Set(['fail_safe', 'blocked'])

/** Returns the exit code for the end of a session, and its name in the summary. */
function endOf(
  { outcome, reason }: Pick<SessionResult, 'outcome' | 'reason'>,
  parkedBy: Followed['parkedBy'],
): { readonly code: ExitCode; readonly status: string } {
  switch (outcome) {
    case 'completed':
      return { code: ExitCode.Done, status: 'done' }
    case 'waiting':
      return { code: ExitCode.Waiting, status: 'waiting for a person' }
    case 'stopped':
      return parkedBy === 'timeout'
        ? { code: ExitCode.TimedOut, status: 'timed out, parked' }
        : { code: ExitCode.Interrupted, status: 'parked' }
    case 'terminated':
      return { code: ExitCode.Failed, status: 'terminated' }
    case 'failed': {
      const status = `failed (${reason})`
      if (REFUSALS.has(reason)) return { code: ExitCode.FailedSafe, status }
      return { code: LIMITS.has(reason) ? ExitCode.Limit : ExitCode.Failed, status }
    }
  }
}

/** Returns the question of a waiting call, and the commands that answer it. */
export function waitingLines(item: WaitingItem): string[] {
  const { threadId, interruptId, toolName, kind, path } = item
  const about = riskText(item)
  const call = callText(toolName, item.arguments)
  const from = path.length > 1 ? `${lineText(path.join(' › '))}: ` : ''
  if (kind === 'input') return [`waiting for an answer: ${from}${call}`]
  if (kind === 'in_doubt')
    return [
      `in doubt, because the process died during the call: ${from}${call}${about === '' ? '' : ` (${about})`}`,
      `  skein settle ${threadId} ${interruptId} --found applied`,
      `  skein settle ${threadId} ${interruptId} --found absent`,
    ]
  return [
    `waiting for approval: ${from}${call}${about === '' ? '' : ` (${about})`}`,
    `  skein approve ${threadId} ${interruptId}`,
    `  skein deny ${threadId} ${interruptId} --reason "…"`,
  ]
}

/** Returns the risk of a waiting call, and how it is undone; empty if neither is known. */
export function riskText({ risk, isIrreversible, request }: WaitingItem): string {
  const undo = isIrreversible ? 'cannot be undone' : undoText(request?.action.rollback)
  return [risk ?? '', undo].filter((text) => text !== '').join(', ')
}

/** Returns how a call is undone; empty if nothing is known about it. */
export function undoText(rollback: unknown): string {
  if (!isPlainObject(rollback)) return ''
  const { type, target, payload } = rollback
  if (type === 'impossible') return 'cannot be undone'
  if (type === 'manual') return 'undone by hand'
  return typeof target === 'string' ? `undone by ${callText(target, payload ?? {})}` : ''
}
