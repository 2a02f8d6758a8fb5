import type { ChildReport, RuntimeEvent, SessionOutcome } from '../event.ts'
import { normalisePath } from '../services/paths.ts'
import type { ThreadChange } from '../store/store.ts'
import { copyFiles, findFiles, type CopiedFiles } from './copy-files.ts'
import type { DrainContext, ThreadPlace } from './drain-context.ts'
import { queuedText } from './queued-text.ts'

/** How a session ended, as the parent is told. */
export interface Report {
  readonly outcome: SessionOutcome
  readonly reason: string
  readonly message: string
  readonly attachments: readonly string[]
}

/**
 * What the end of a child's session changes at its parent: part of the commit that ends the session,
 * so that a result is neither lost nor delivered twice (§7.10).
 */
export async function reportToParent(
  context: DrainContext,
  report: Report,
): Promise<readonly ThreadChange[]> {
  const { state, environment, head } = context
  const { parent, session } = state
  if (!parent) return []
  const parentHead = await environment.store.head(parent.threadId)
  if (!parentHead || parentHead.lifecycle === 'terminated' || parentHead.lifecycle === 'erased')
    return []
  const files = copyFiles(
    context,
    findFiles(context, presentOf(context, report)),
    `${head.id}/${session?.id ?? environment.ids()}`,
  )
  const waiters = waitersOf(context)
  const isAwaited = waiters.length > 0
  const isTold =
    isAwaited || (parent.communication === 'implicit' && report.outcome !== 'terminated')
  const events: RuntimeEvent[] = [
    ...(isTold ? files.events : []),
    registryEvent(context, report),
    ...waiters.map((interruptId) => answer(context, { report, files, interruptId })),
  ]
  if (!isAwaited && isTold) events.push(queuedReport(context, report, files))
  return [{ id: parent.threadId, append: events, wake: { by: environment.clock.now() } }]
}

/** Calls of the parent that wait; before the session has begun, those of the messages that wait for it. */
function waitersOf({ state: { session, queue } }: DrainContext): readonly string[] {
  if (session) return session.waiters
  return queue.flatMap(({ parentInterruptId: id }) => (id === undefined ? [] : [id]))
}

/** A call after the one that ended the session may have removed what that one names. */
function presentOf({ state }: DrainContext, { attachments }: Report): readonly string[] {
  return attachments.filter((path) => state.files.has(normalisePath(path)))
}

/** A disposable child is over with its session; a resumable one waits for the next message. */
function registryEvent(context: DrainContext, { outcome, message }: Report): RuntimeEvent {
  const { state, head } = context
  const at = context.at()
  const reference = head.id
  if (outcome === 'terminated')
    return { type: 'subagent_ended', at, reference, outcome: 'terminated' }
  if (state.parent?.isResumable) return { type: 'subagent_updated', at, reference, status: 'idle' }
  const ended = outcome === 'completed' ? 'completed' : 'failed'
  return { type: 'subagent_ended', at, reference, outcome: ended, result: message }
}

function isFailure({ outcome }: Report): boolean {
  return outcome !== 'completed'
}

/** The exact words of §7.10, then one path per line. */
function reportText(reference: string, report: Report, files: CopiedFiles): string {
  return openingOf(reference, report) + bodyText(report, files)
}

function openingOf(reference: string, report: Report): string {
  return isFailure(report)
    ? `Subagent (reference: ${reference}) has reported a failure:\n\n`
    : `Subagent (reference: ${reference}) has returned the following result:\n\n`
}

/** What a tool said goes as it stands; an end that nobody spoke of has its reason beside it. */
function bodyText({ outcome, reason, message }: Report, { paths }: CopiedFiles): string {
  const isSaid =
    outcome === 'completed' ||
    reason === 'session_fail' ||
    reason === 'stop_session' ||
    (reason === outcome && message !== '')
  const text = isSaid ? message : `${message || 'The session ended.'} (reason: ${reason})`
  return paths.length === 0 ? text : [text, '', ...paths].join('\n')
}

/** The result of the call that waited. A reference is only of use for a child that can be messaged. */
function answer(
  context: DrainContext,
  {
    report,
    files,
    interruptId,
  }: { readonly report: Report; readonly files: CopiedFiles; readonly interruptId: string },
): RuntimeEvent {
  const { state, head } = context
  const isResumable = state.parent?.isResumable
  const text = isResumable ? reportText(head.id, report, files) : bodyText(report, files)
  const isOwn = report.outcome === 'completed' || report.outcome === 'failed'
  const late: ChildReport = {
    queueId: context.environment.ids(),
    reference: head.id,
    opening: isResumable ? '' : openingOf(head.id, report),
    ...(files.paths.length > 0 && { attachments: files.paths }),
  }
  return {
    type: 'interrupt_answered',
    at: context.at(),
    interruptId,
    answer: isFailure(report) ? { type: 'error', message: text } : { type: 'result', value: text },
    ...(isOwn && state.parent?.communication === 'implicit' && { report: late }),
  }
}

function queuedReport(context: DrainContext, report: Report, files: CopiedFiles): RuntimeEvent {
  return silentMessage(context, reportText(context.head.id, report, files), files)
}

/** A silent message to the parent, marked with the child it comes from. */
function silentMessage(context: ThreadPlace, text: string, files: CopiedFiles): RuntimeEvent {
  const subagentId = context.head.id
  return queuedText(context, { text, files }, { role: 'user', isSilent: true, subagentId })
}

/** `state.notifyParent`: raw text, silent, queued. `pending` is what the same call has changed. */
export async function noticeToParent(
  context: ThreadPlace,
  { text, attachments }: { readonly text: string; readonly attachments: readonly string[] },
  pending: readonly RuntimeEvent[],
): Promise<readonly ThreadChange[]> {
  const { state, environment } = context
  if (!state.parent) return []
  const parentHead = await environment.store.head(state.parent.threadId)
  if (!parentHead || parentHead.lifecycle === 'terminated' || parentHead.lifecycle === 'erased')
    return []
  const files = copyFiles(context, findFiles(context, attachments, pending), environment.ids())
  const body = files.paths.length === 0 ? text : [text, '', ...files.paths].join('\n')
  const append = [...files.events, silentMessage(context, body, files)]
  return [{ id: state.parent.threadId, append, wake: { by: environment.clock.now() } }]
}
