import type { DrainContext } from '../contract/context.ts'
import type { ChildReport, RuntimeEvent, SessionOutcome } from '../contract/event.ts'
import type { ThreadChange } from '../store/store.ts'
import {
  copyFiles,
  findFiles,
  liveParent,
  silentMessage,
  withPaths,
  type CopiedFiles,
} from '../thread/changes.ts'
import { normalisePath } from '../thread/paths.ts'

/** How a session ended, as the parent is told. */
export interface ChildOutcome {
  readonly outcome: SessionOutcome
  readonly reason: string
  readonly message: string
  readonly attachments: readonly string[]
}

/**
 * What the end of a child's session changes at its parent. It is part of the commit that ends the
 * session, so that a result is neither lost nor delivered twice (Standard Agents §7.10).
 */
export async function reportToParent(
  context: DrainContext,
  report: ChildOutcome,
): Promise<readonly ThreadChange[]> {
  const { state, environment, head } = context
  const { parent, session, queue } = state
  const parentId = await liveParent(context)
  if (!parent || parentId === undefined) return []
  // A later call of the session may have removed a file that its end names.
  const present = report.attachments.filter((path) => state.files.has(normalisePath(path)))
  const salt = `${head.id}/${session?.id ?? environment.ids()}`
  const files = copyFiles(context, findFiles(context, present), salt)
  // The parent's calls that wait; before a session has begun, those that wait for queued messages.
  const waiters =
    session?.waiters ?? queue.flatMap(({ parentInterruptId: id }) => (id === undefined ? [] : [id]))
  // A disposable child ends with its session; a resumable one waits for the next message.
  const at = context.at()
  const reference = head.id
  const { outcome, message: result } = report
  const registered: RuntimeEvent =
    outcome !== 'terminated' && parent.isResumable
      ? { type: 'subagent_updated', at, reference, status: 'idle' }
      : outcome === 'terminated'
        ? { type: 'subagent_ended', at, reference, outcome }
        : {
            type: 'subagent_ended',
            at,
            reference,
            outcome: outcome === 'completed' ? 'completed' : 'failed',
            result,
          }
  const isAwaited = waiters.length > 0
  const isTold =
    isAwaited || (parent.communication === 'implicit' && report.outcome !== 'terminated')
  const events: RuntimeEvent[] = [
    ...(isTold ? files.events : []),
    registered,
    ...waiters.map((interruptId) => answer(context, { report, files, interruptId })),
  ]
  if (!isAwaited && isTold) {
    const text = openingOf(head.id, report) + bodyText(report, files)
    events.push(silentMessage(context, text, files))
  }
  return [{ id: parentId, append: events, wake: { by: environment.clock.now() } }]
}

/** The exact words of Standard Agents §7.10. */
function openingOf(reference: string, { outcome }: ChildOutcome): string {
  return outcome === 'completed'
    ? `Subagent (reference: ${reference}) has returned the following result:\n\n`
    : `Subagent (reference: ${reference}) has reported a failure:\n\n`
}

/**
 * The message of the session with one path per line. Words that a tool of the child chose are passed on
 * unchanged; when the runtime ended the session, the reason is added.
 */
function bodyText({ outcome, reason, message }: ChildOutcome, files: CopiedFiles): string {
  const isChosen =
    outcome === 'completed' ||
    reason === 'session_fail' ||
    reason === 'stop_session' ||
    (reason === outcome && message !== '')
  const text = isChosen ? message : `${message || 'The session ended.'} (reason: ${reason})`
  return withPaths(text, files)
}

/** The result of a call that waited. The opening, with the reference, is for children that can be messaged again. */
function answer(
  context: DrainContext,
  {
    report,
    files,
    interruptId,
  }: { readonly report: ChildOutcome; readonly files: CopiedFiles; readonly interruptId: string },
): RuntimeEvent {
  const { state, head } = context
  const opening = openingOf(head.id, report)
  const isResumable = state.parent?.isResumable
  const body = bodyText(report, files)
  const text = isResumable ? opening + body : body
  const isOwn = report.outcome === 'completed' || report.outcome === 'failed'
  const late: ChildReport = {
    queueId: context.environment.ids(),
    reference: head.id,
    opening: isResumable ? '' : opening,
    attachments: files.paths.length > 0 ? files.paths : undefined,
  }
  return {
    type: 'interrupt_answered',
    at: context.at(),
    interruptId,
    answer:
      report.outcome === 'completed'
        ? { type: 'result', value: text }
        : { type: 'error', message: text },
    // In case the call is over by now: the parent then queues the report as a message.
    report: isOwn && state.parent?.communication === 'implicit' ? late : undefined,
  }
}
