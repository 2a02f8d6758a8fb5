import type { EventOf } from '../contract/event-of.ts'
import { encodeBase64 } from '@skein/base'
import { headOf, type ApiContext } from './api-context.ts'
import { RuntimeError } from '../contract/error.ts'
import { EVENT_VERSION, type RuntimeEvent, type StoredEvent } from '../contract/event.ts'
import { nextTurn } from '../store/next-turn.ts'
import type { ThreadHead } from '../store/head.ts'
import { withoutCause } from '../view/public-event.ts'

/** How many events are read before other work of the process gets its turn. */
const SLICE = 200

/**
 * Exports the log of a thread as JSON lines: a header, the events, then the contents that they name. The lines come
 * in parts; only one part is in memory. The header says how many lines follow, so the log is read twice.
 */
export async function* exportLines(
  context: ApiContext,
  threadId: string,
): AsyncGenerator<string, void, undefined> {
  const head = await headOf(context, threadId)
  const names = new Set<string>()
  for await (const page of logPages(context, head))
    for (const name of blobsOf(page.map(({ event }) => event))) names.add(name)
  const blobs: string[] = []
  for (const name of names) if (await context.store.blob(name)) blobs.push(name)
  const header: ThreadLinesHeader = {
    skein: 'thread',
    version: EVENT_VERSION,
    threadId,
    agent: head.agent,
    title: head.title,
    tags: head.tags,
    exportedAt: context.at(),
    events: head.seq,
    blobs: blobs.length,
  }
  yield lineOf(header)
  for await (const page of logPages(context, head))
    yield page.map(({ seq, event }) => lineOf({ seq, event: withoutSecrets(event) })).join('')
  for (const blob of blobs) {
    const bytes = await context.store.blob(blob)
    if (!bytes) throw replaced(threadId)
    yield lineOf({ blob, base64: encodeBase64(bytes) } satisfies BlobLine)
  }
}

/** Reads the log of a thread up to the event that was the last when its head was read. */
async function* logPages(
  { store }: ApiContext,
  { id, logId, seq: last }: ThreadHead,
): AsyncGenerator<readonly StoredEvent[], void, undefined> {
  for (let after = 0; after < last; ) {
    const page = await store.events(id, { after, limit: Math.min(SLICE, last - after) })
    if (page.length === 0 || (await store.head(id))?.logId !== logId) throw replaced(id)
    yield page
    after += page.length
    await nextTurn()
  }
}

function replaced(threadId: string): RuntimeError {
  return new RuntimeError(`Thread ${threadId} was erased while it was exported.`, {
    code: 'THREAD_NOT_FOUND',
    hint: 'What was exported so far is not complete. Export the thread again if it is still there.',
  })
}

function lineOf(line: object): string {
  return `${JSON.stringify(line)}\n`
}

/** The first line of an exported thread. */
interface ThreadLinesHeader {
  readonly skein: 'thread'
  /** Version of the events. */
  readonly version: number
  readonly threadId: string
  readonly agent: string
  readonly title: string | null
  readonly tags: readonly string[]
  readonly exportedAt: string
  readonly events: number
  readonly blobs: number
}

/** One line with a content that the events name by its hash. */
interface BlobLine {
  readonly blob: string
  readonly base64: string
}

/**
 * Returns an event without secrets (encrypted or not) and without tokens, so that it can leave the
 * installation.
 */
export function withoutSecrets(event: RuntimeEvent): RuntimeEvent {
  switch (event.type) {
    case 'env_set':
      return event.valueType === 'secret' ? { ...event, value: null } : event
    case 'variables_provided': {
      const texts = Object.entries(event.values).filter(([, { valueType }]) => valueType === 'text')
      return { ...event, values: Object.fromEntries(texts) }
    }
    case 'custom_event': // transient events record approvals with sealed tokens
      return event.isTransient ? { ...event, data: null } : event
    case 'interrupt_answered': {
      if (event.answer.type !== 'approve') return event
      const { token: _, ...answer } = event.answer
      return { ...event, answer }
    }
    case 'grant_made':
      return { ...event, grant: '' }
    case 'tool_execution_end':
      return withoutCause(event)
    default:
      event satisfies NoSecret
      return event
  }
}

/** Returns the hashes of the contents that the events name. */
export function blobsOf(events: readonly RuntimeEvent[]): readonly string[] {
  const hashes = new Set<string>()
  for (const event of events) {
    if (event.type === 'file_written' && event.hash !== undefined) hashes.add(event.hash)
    // Erased threads have requests without their frames.
    if (event.type === 'model_requested' && event.frame !== '') hashes.add(event.frame)
  }
  return [...hashes]
}

/** Events without secrets and tokens. */
// prettier-ignore
type NoSecret = EventOf<
  'thread_created' | 'thread_updated' | 'thread_terminated' | 'thread_erased' | 'status_changed' |
  'session_start' | 'session_end' | 'session_failing' | 'write_undone' | 'undo_decided' |
  'message_queued' | 'message_unqueued' | 'message_added' | 'message_updated' | 'call_changed' |
  'message_removed' | 'delivery_changed' | 'turn_start' | 'turn_end' | 'step_start' |
  'step_reset' | 'step_failed' | 'text_delta' | 'tool_execution_start' | 'late_result' |
  'call_reset' | 'interrupt_opened' | 'subagent_created' | 'subagent_updated' | 'subagent_ended' |
  'agent_handoff' | 'context_compacted' | 'gate_decided' | 'error_raised' | 'model_requested' |
  'model_answered' | 'inference_recorded' | 'usage_recorded' | 'agent_registered' | 'step_end' |
  'reasoning_delta' | 'tool_call_delta' | 'tool_execution_progress' | 'tool_call_hidden' |
  'file_written' | 'file_removed' | 'source_added' | 'evidence_added' | 'session_stop_requested' |
  'immediate_done' | 'stop_requested' | 'turn_cut' | 'resume_requested' | 'value_set' |
  'effect_scheduled' | 'effect_started' | 'effect_ended' | 'variables_requested' |
  'variables_settled' | 'grant_revoked'
>
