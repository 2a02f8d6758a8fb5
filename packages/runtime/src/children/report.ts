import type { DrainContext } from '../context/drain-context.ts'
import type { ChildReport, RuntimeEvent, SessionOutcome } from '../contract/event.ts'
import type { KernelState } from '../state/kernel-state.ts'
import { sha256Hex } from '@skein/base'
import type { Blob, ThreadChange } from '../store/commit.ts'
import { cutLargeText } from '../thread/large-text.ts'
import { liveParent, silentMessage, withPaths } from '../thread/changes.ts'
import { attachmentPath, normalisePath } from '../thread/paths.ts'
import { type CopiedFiles, findFiles, copyFiles } from '../thread/copied-files.ts'

/** The end of a child's session, as it is reported to the parent. */
export interface ChildOutcome {
  readonly outcome: SessionOutcome
  readonly reason: string
  readonly message: string
  readonly attachments: readonly string[]
}

/**
 * Returns the changes that the end of a child's session makes in its parent. They are part of the commit that
 * ends the session, so that a result is neither lost nor delivered twice (Standard Agents §7.10).
 */
export async function reportToParent(
  context: DrainContext,
  report: ChildOutcome,
): Promise<ParentReport> {
  const { state, environment, head } = context
  const { parent, session, queue } = state
  const parentId = await liveParent(context)
  if (!parent || parentId === undefined) return { changes: [], blobs: [] }
  // A file that the report names may have been removed by a later call of the session, and the names in a call of a
  // client's tool were not checked, so only existing files are copied.
  const present = report.attachments.filter((path) => isFile(state, path))
  const salt = `${head.id}/${session?.id ?? environment.ids()}`
  const files = copyFiles(context, findFiles(context, present), salt)
  // The parent's waiting calls (interrupts) that get the result of this session. If no session has begun,
  // these are the calls that wait for queued messages.
  const waiters =
    session?.waiters ?? queue.flatMap(({ parentInterruptId: id }) => (id === undefined ? [] : [id]))
  // A child that is not resumable ends with its session; a resumable child waits for the next message.
  const at = context.at()
  const reference = head.id
  const { outcome, message: result } = report
  const registration: RuntimeEvent =
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
  const body = fitBody(context, bodyText(report, files), salt)
  const events: RuntimeEvent[] = [
    ...(isTold ? [...files.events, ...body.events] : []),
    registration,
    ...waiters.map((interruptId) =>
      answer(context, { report, files, body: body.text, interruptId }),
    ),
  ]
  if (!isAwaited && isTold)
    events.push(silentMessage(context, openingOf(head.id, report) + body.text, files))
  // If the parent ends before this is committed, the result is stored as undelivered (see `endSession`).
  const wake = { by: environment.clock.now() }
  const changes = [{ id: parentId, mustBeLive: true, append: events, wake }]
  return { changes, blobs: isTold ? body.blobs : [] }
}

/** What the report of a child changes in its parent, and the contents of files that the parent gets. */
export interface ParentReport {
  readonly changes: readonly ThreadChange[]
  readonly blobs: readonly Blob[]
}

/**
 * Returns the text of a report. The parent's model gets it whole only up to the size of a tool's result
 * (`maxToolResultBytes`); of a larger one it gets the beginning, the end and the name of a file of the parent with
 * all of it.
 */
function fitBody(
  context: DrainContext,
  text: string,
  salt: string,
): { readonly text: string; readonly events: readonly RuntimeEvent[]; readonly blobs: Blob[] } {
  const excerpt = cutLargeText(context.redactor()?.text(text) ?? text, context.environment.limits)
  if (!excerpt) return { text, events: [], blobs: [] }
  const { kept: bytes } = excerpt
  const mediaType = 'text/plain'
  const path = attachmentPath('/result.txt', salt)
  const hash = sha256Hex(bytes)
  const at = context.at()
  const file = {
    type: 'file_written',
    at,
    path,
    mediaType,
    sizeBytes: bytes.length,
    hash,
  } as const
  return { text: excerpt.shown(path), events: [file], blobs: [{ hash, bytes }] }
}

/** Returns the opening sentence of a report, in the exact words of Standard Agents §7.10. */
function openingOf(reference: string, { outcome }: ChildOutcome): string {
  return outcome === 'completed'
    ? `Subagent (reference: ${reference}) has returned the following result:\n\n`
    : `Subagent (reference: ${reference}) has reported a failure:\n\n`
}

/**
 * Returns the message of the session, followed by one file path per line. A text that a tool of the child
 * chose is passed on unchanged; when the runtime ended the session, the reason is added.
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

/**
 * Returns the event that answers a waiting call of the parent. The text begins with the opening sentence,
 * which contains the reference, only for children that can be messaged again.
 */
function answer(
  context: DrainContext,
  {
    report,
    files,
    body,
    interruptId,
  }: {
    readonly report: ChildOutcome
    readonly files: CopiedFiles
    readonly body: string
    readonly interruptId: string
  },
): RuntimeEvent {
  const { state, head } = context
  const opening = openingOf(head.id, report)
  const isResumable = state.parent?.isResumable
  const text = isResumable ? opening + body : body
  const isOwn = report.outcome === 'completed' || report.outcome === 'failed'
  const late: ChildReport = {
    queueId: context.environment.ids(),
    reference: head.id,
    opening: isResumable ? '' : opening,
    attachments: files.paths.length > 0 ? files.paths : undefined,
  }
  const attachments = files.paths.length > 0 && { attachments: files.paths }
  return {
    type: 'interrupt_answered',
    at: context.at(),
    interruptId,
    answer:
      report.outcome === 'completed'
        ? { type: 'result', value: text }
        : { type: 'error', message: text },
    // Used if the call has ended meanwhile: the parent then queues the report as a message.
    report: isOwn && state.parent?.communication === 'implicit' ? late : undefined,
    ...attachments,
  }
}

function isFile({ files }: KernelState, path: string): boolean {
  try {
    return files.has(normalisePath(path))
  } catch {
    return false // it is no path
  }
}
