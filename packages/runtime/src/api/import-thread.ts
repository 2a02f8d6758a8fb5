import { decodeBase64, isPlainObject, sha256Hex } from '@skein/base'
import type { ApiContext } from './api-context.ts'
import { isCopied, pushChecked, rootCreated, storeCopy } from './copied-thread.ts'
import { blobsOf, withoutSecrets } from './export-thread.ts'
import { checkLabel, checkTags } from './labels.ts'
import { RuntimeError } from '../contract/error.ts'
import { EVENT_VERSION, type RuntimeEvent, type RuntimeOnlyEvent, type StoredEvent } from '../contract/event.ts'
import { upcastEvent } from '../store/upcast.ts'
import { KernelFold } from '../state/fold.ts'
import type { Blob } from '../store/commit.ts'
import type { ThreadHead } from '../store/head.ts'

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
  if (first?.type !== 'thread_created') throw invalidLine(2, 'it is not the event thread_created')
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
  if (skein !== 'thread') throw invalidLine(1, 'it is not the header of an exported thread')
  if (!Number.isInteger(version) || Number(version) < 1 || Number(version) > EVENT_VERSION)
    throw invalidLine(1, `its version is ${JSON.stringify(version)}, not one up to ${EVENT_VERSION}`)
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
    if (blobs.length > 0) throw invalidLine(number, 'an event follows after the contents')
    // An event of an older version is first converted to the current version.
    const raw = value['event']
    const event = isPlainObject(raw)
      ? upcastEvent(raw as unknown as RuntimeEvent, Number(version)) // `eventOf` checks it below
      : undefined
    const storedEvent = eventOf({ seq: value['seq'], event }, number, { expected: events.length + 1, isKnown })
    pushChecked(fold, storedEvent, number)
    events.push(storedEvent.event)
  })
  // The header announces how many lines follow, so that a truncated file is rejected.
  for (const [name, { length }] of Object.entries({ events, blobs }))
    if (header[name] !== length)
      throw invalidLine(1, `it announces ${JSON.stringify(header[name])} ${name}, and ${length} follow`)
  // Every hash must come with its content. An import could otherwise get another thread's file by its hash.
  const blobHashes = new Set(blobs.map(({ hash }) => hash))
  events.forEach((event, index) => {
    const absent = blobsOf([event]).find((hash) => !blobHashes.has(hash))
    if (absent !== undefined)
      throw invalidLine(index + 2, `the content ${absent} is not among the lines`)
  })
  return { header, events, blobs }
}

function objectOf(line: string, number: number): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch (cause) {
    throw invalidLine(number, 'it is not JSON', cause)
  }
  if (!isPlainObject(value)) throw invalidLine(number, 'it is not an object')
  return value
}

function eventOf(
  { seq, event }: Readonly<Record<string, unknown>>,
  number: number,
  { expected, isKnown }: { readonly expected: number; readonly isKnown: IsKnown },
): StoredEvent {
  if (seq !== expected)
    throw invalidLine(number, `its number is ${JSON.stringify(seq)}, not ${expected}`)
  if (!isPlainObject(event)) throw invalidLine(number, 'it has no event')
  const { type, at } = event
  if (typeof type !== 'string' || !isKnown(type))
    throw invalidLine(number, `the event ${JSON.stringify(type)} is not known`)
  if (typeof at !== 'string' || Number.isNaN(Date.parse(at)))
    throw invalidLine(number, 'its event has no time')
  return { seq: expected, event: event as unknown as RuntimeEvent } // the fold checks the other fields
}

function blobOf(
  { limits }: ApiContext,
  { blob, base64 }: Readonly<Record<string, unknown>>,
  number: number,
): Blob {
  if (typeof blob !== 'string' || typeof base64 !== 'string')
    throw invalidLine(number, 'it is not a content with its hash')
  let bytes: Uint8Array
  try {
    bytes = decodeBase64(base64)
  } catch (cause) {
    throw invalidLine(number, 'its content is not base64', cause)
  }
  if (bytes.length > limits.maxFileBytes)
    throw invalidLine(number, `its content has ${bytes.length} bytes, more than ${limits.maxFileBytes}`)
  if (sha256Hex(bytes) !== blob) throw invalidLine(number, 'its content is not what its hash says')
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

function invalidLine(line: number, problem: string, cause?: unknown): RuntimeError {
  return new RuntimeError(`Line ${line} of the exported thread cannot be used: ${problem}.`, {
    code: 'INPUT_INVALID',
    hint: 'Nothing was stored. Export the thread again.',
    cause,
  })
}
