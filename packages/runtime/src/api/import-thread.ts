import { decodeBase64, encodeBase64, isPlainObject, sha256Hex } from '@skein/base'
import { RuntimeError } from '../contract/error.ts'
import {
  EVENT_VERSION,
  type RuntimeEvent,
  type RuntimeOnlyEvent,
  type StoredEvent,
} from '../contract/event.ts'
import type { EventOf } from '../contract/event-of.ts'
import { KernelFold } from '../state/fold.ts'
import { upcastEvent } from '../contract/upcast.ts'
import { nextTurn } from '../store/next-turn.ts'
import type { Blob, ThreadHead } from '../store/store.ts'
import { withoutCause } from '../view/public-event.ts'
import { type ApiContext, headOf } from './api-context.ts'
import { checkLabel, checkTags } from './labels.ts'
import { pushChecked, rootCreated, storeCopy } from './copied-thread.ts'

/** Creates a thread from exported lines. Every line is checked before anything is stored. */
export async function importThread(
  context: ApiContext,
  lines: string,
  { tenant = 'default', owner }: { readonly tenant?: string; readonly owner?: string } = {},
): Promise<ThreadHead> {
  checkLabel(tenant, 'The tenant of the thread')
  if (owner !== undefined) checkLabel(owner, 'The owner of the thread')
  const { isThreadEvent } = await import('@skein/threads')
  const isKnown: IsKnown = (type) => isThreadEvent({ type }) || Object.hasOwn(OWN_TYPES, type)
  const { header, events, blobs } = readLines(context, lines, isKnown)
  const id = context.ids()
  const title = typeof header['title'] === 'string' ? header['title'] : null
  if (title !== null) checkLabel(title, 'The title of the thread')
  const tags = (header['tags'] ?? []) as string[] // `checkTags` checks the type on the next line
  checkTags(tags)
  const [first, ...rest] = events
  if (first?.type !== 'thread_created') throw invalid(2, 'it is not the event thread_created')
  return storeCopy(context, {
    id,
    tenant,
    owner: owner ?? null,
    title,
    tags,
    events: [rootCreated(first, { id, title }), ...rest.filter(isCopied).map(withoutSecrets)],
    blobs,
    point: 'import_thread',
  })
}

interface Lines {
  readonly header: Readonly<Record<string, unknown>>
  readonly events: readonly RuntimeEvent[]
  readonly blobs: readonly Blob[]
}

/** Whether the log of a thread may have events of this type. */
type IsKnown = (type: string) => boolean

function readLines(context: ApiContext, text: string, isKnown: IsKnown): Lines {
  const [first = '', ...lines] = text.trimEnd().split('\n')
  const header = objectOf(first, 1)
  const { skein, version } = header
  if (skein !== 'thread') throw invalid(1, 'it is not the header of an exported thread')
  if (!Number.isInteger(version) || Number(version) < 1 || Number(version) > EVENT_VERSION)
    throw invalid(1, `its version is ${JSON.stringify(version)}, not one up to ${EVENT_VERSION}`)
  const fold = new KernelFold()
  const events: RuntimeEvent[] = []
  const blobs: Blob[] = []
  lines.forEach((line, index) => {
    const number = index + 2
    const value = objectOf(line, number)
    if ('blob' in value) {
      blobs.push(blobOf(context, value, number))
      return
    }
    if (blobs.length > 0) throw invalid(number, 'an event follows after the contents')
    // An event of an older version is first converted to the current version.
    const raw = value['event']
    const event = isPlainObject(raw)
      ? upcastEvent(raw as unknown as RuntimeEvent, Number(version)) // `eventOf` checks it below
      : undefined
    const stored = eventOf({ seq: value['seq'], event }, number, { expected: events.length + 1, isKnown })
    pushChecked(fold, stored, number)
    events.push(stored.event)
  })
  // The header announces how many lines follow, so that a truncated file is rejected.
  for (const [name, { length }] of Object.entries({ events, blobs }))
    if (header[name] !== length)
      throw invalid(1, `it announces ${JSON.stringify(header[name])} ${name}, and ${length} follow`)
  // Every hash must come with its content. An import could otherwise get another thread's file by its hash.
  const given = new Set(blobs.map(({ hash }) => hash))
  events.forEach((event, index) => {
    const absent = blobsOf([event]).find((hash) => !given.has(hash))
    if (absent !== undefined)
      throw invalid(index + 2, `the content ${absent} is not among the lines`)
  })
  return { header, events, blobs }
}

function objectOf(line: string, number: number): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch (cause) {
    throw invalid(number, 'it is not JSON', cause)
  }
  if (!isPlainObject(value)) throw invalid(number, 'it is not an object')
  return value
}

function eventOf(
  { seq, event }: Readonly<Record<string, unknown>>,
  number: number,
  { expected, isKnown }: { readonly expected: number; readonly isKnown: IsKnown },
): StoredEvent {
  if (seq !== expected)
    throw invalid(number, `its number is ${JSON.stringify(seq)}, not ${expected}`)
  if (!isPlainObject(event)) throw invalid(number, 'it has no event')
  const { type, at } = event
  if (typeof type !== 'string' || !isKnown(type))
    throw invalid(number, `the event ${JSON.stringify(type)} is not known`)
  if (typeof at !== 'string' || Number.isNaN(Date.parse(at)))
    throw invalid(number, 'its event has no time')
  return { seq: expected, event: event as unknown as RuntimeEvent } // the fold checks the other fields
}

function blobOf(
  { limits }: ApiContext,
  { blob, base64 }: Readonly<Record<string, unknown>>,
  number: number,
): Blob {
  if (typeof blob !== 'string' || typeof base64 !== 'string')
    throw invalid(number, 'it is not a content with its hash')
  let bytes: Uint8Array
  try {
    bytes = decodeBase64(base64)
  } catch (cause) {
    throw invalid(number, 'its content is not base64', cause)
  }
  if (bytes.length > limits.maxFileBytes)
    throw invalid(number, `its content has ${bytes.length} bytes, more than ${limits.maxFileBytes}`)
  if (sha256Hex(bytes) !== blob) throw invalid(number, 'its content is not what its hash says')
  return { hash: blob, bytes }
}

// A record instead of a list, so that the compiler reports a missing event type.
const OWN_TYPES: Readonly<Record<RuntimeOnlyEvent['type'], true>> = {
  call_reset: true,
  call_changed: true,
  grant_made: true,
  grant_revoked: true,
  message_queued: true,
  message_unqueued: true,
  session_start: true,
  session_end: true,
  session_failing: true,
  write_undone: true,
  undo_decided: true,
  session_stop_requested: true,
  step_failed: true,
  immediate_done: true,
  stop_requested: true,
  turn_cut: true,
  resume_requested: true,
  thread_terminated: true,
  value_set: true,
  env_set: true,
  effect_scheduled: true,
  effect_started: true,
  effect_ended: true,
  variables_requested: true,
  variables_provided: true,
  variables_settled: true,
  context_compacted: true,
  model_requested: true,
  model_answered: true,
  inference_recorded: true,
  thread_erased: true,
}

function invalid(line: number, problem: string, cause?: unknown): RuntimeError {
  return new RuntimeError(`Line ${line} of the exported thread cannot be used: ${problem}.`, {
    code: 'INPUT_INVALID',
    hint: 'Nothing was stored. Export the thread again.',
    cause,
  })
}

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
function withoutSecrets(event: RuntimeEvent): RuntimeEvent {
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

/**
 * Returns false for events that a copy does not contain: the end of the thread, transient events, and grants,
 * which people gave to the original alone.
 */
export function isCopied(event: RuntimeEvent): boolean {
  const { type } = event
  if (type === 'custom_event') return event.isTransient !== true
  return !NOT_COPIED.has(type)
}

const NOT_COPIED: ReadonlySet<RuntimeEvent['type']> = new Set([
  'thread_terminated',
  'thread_erased',
  'grant_made',
  'grant_revoked',
])

/** Returns the hashes of the contents that the events name. */
function blobsOf(events: readonly RuntimeEvent[]): readonly string[] {
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
