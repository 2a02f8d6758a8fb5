import { decodeBase64, isPlainObject, sha256Hex } from '@skein/base'
import { isThreadEvent } from '@skein/threads'
import { RuntimeError } from '../error.ts'
import {
  EVENT_VERSION,
  type RuntimeEvent,
  type RuntimeOnlyEvent,
  type StoredEvent,
} from '../event.ts'
import { KernelFold } from '../fold/fold.ts'
import { upcastEvent } from '../upcast.ts'
import type { Blob, ThreadHead } from '../store/store.ts'
import type { ApiContext } from './api-context.ts'
import { pushChecked, rootCreated, storeCopy } from './copied-thread.ts'
import { checkLabel, checkTags } from './check-input.ts'
import { blobsOf, isCopied, withoutSecrets } from './thread-lines.ts'

/** Makes a thread of exported lines. Every line is checked before anything is stored. */
export async function importThread(
  context: ApiContext,
  lines: string,
  { tenant = 'default', owner }: { readonly tenant?: string; readonly owner?: string } = {},
): Promise<ThreadHead> {
  checkLabel(tenant, 'The tenant of the thread')
  if (owner !== undefined) checkLabel(owner, 'The owner of the thread')
  const { header, events, blobs } = readLines(context, lines)
  const id = context.ids()
  const { title, tags } = labelsOf(header)
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

function readLines(context: ApiContext, text: string): Lines {
  const [first = '', ...lines] = text.trimEnd().split('\n')
  const header = objectOf(first, 1)
  checkHeader(header)
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
    if (blobs.length > 0) throw invalid(number, 'an event stands after the contents')
    const stored = eventOf(upcastLine(value, header), number, events.length + 1)
    pushChecked(fold, stored, number)
    events.push(stored.event)
  })
  checkCounts(header, { events: events.length, blobs: blobs.length })
  checkNamed(events, blobs)
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

function checkHeader({ skein, version }: Readonly<Record<string, unknown>>): void {
  if (skein !== 'thread') throw invalid(1, 'it is not the header of an exported thread')
  if (!Number.isInteger(version) || Number(version) < 1 || Number(version) > EVENT_VERSION)
    throw invalid(1, `its version is ${JSON.stringify(version)}, not one up to ${EVENT_VERSION}`)
}

/** A file that was cut off is not a thread. */
function checkCounts(
  header: Readonly<Record<string, unknown>>,
  found: { readonly events: number; readonly blobs: number },
): void {
  for (const [name, count] of Object.entries(found))
    if (header[name] !== count)
      throw invalid(1, `it announces ${JSON.stringify(header[name])} ${name}, and ${count} follow`)
}

/** A hash without its content could be that of somebody else's file. */
function checkNamed(events: readonly RuntimeEvent[], blobs: readonly Blob[]): void {
  const given = new Set(blobs.map(({ hash }) => hash))
  events.forEach((event, index) => {
    const absent = blobsOf([event]).find((hash) => !given.has(hash))
    if (absent !== undefined)
      throw invalid(index + 2, `the content ${absent} is not among the lines`)
  })
}

function labelsOf({ title, tags }: Lines['header']): { title: string | null; tags: string[] } {
  if (typeof title === 'string') checkLabel(title, 'The title of the thread')
  const list = (tags ?? []) as string[] // checked just below
  checkTags(list)
  return { title: typeof title === 'string' ? title : null, tags: list }
}

function eventOf(
  { seq, event }: Readonly<Record<string, unknown>>,
  number: number,
  expected: number,
): StoredEvent {
  if (seq !== expected)
    throw invalid(number, `its number is ${JSON.stringify(seq)}, not ${expected}`)
  if (!isPlainObject(event)) throw invalid(number, 'it has no event')
  const { type, at } = event
  if (typeof type !== 'string' || !(isThreadEvent({ type }) || Object.hasOwn(OWN_TYPES, type)))
    throw invalid(number, `the event ${JSON.stringify(type)} is not known`)
  if (typeof at !== 'string' || Number.isNaN(Date.parse(at)))
    throw invalid(number, 'its event has no time')
  return { seq: expected, event: event as unknown as RuntimeEvent } // its type is known; the fold reads the rest
}

/** A line of an older version as this one would have written it. */
function upcastLine(
  line: Readonly<Record<string, unknown>>,
  { version }: Lines['header'],
): Readonly<Record<string, unknown>> {
  if (!isPlainObject(line['event'])) return line
  // What it is was not checked yet; an upcaster looks at the type first, as everybody.
  return { ...line, event: upcastEvent(line['event'] as unknown as RuntimeEvent, Number(version)) }
}

function blobOf(
  { limits }: ApiContext,
  { blob, base64 }: Readonly<Record<string, unknown>>,
  number: number,
): Blob {
  if (typeof blob !== 'string' || typeof base64 !== 'string')
    throw invalid(number, 'it is no content')
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

// A record, not a list, so that the compiler demands every event.
const OWN_TYPES: Readonly<Record<RuntimeOnlyEvent['type'], true>> = {
  call_reset: true,
  message_queued: true,
  message_unqueued: true,
  session_start: true,
  session_end: true,
  session_stop_requested: true,
  step_failed: true,
  immediate_done: true,
  stop_requested: true,
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
    ...(cause !== undefined && { cause }),
  })
}
