import { isObject } from '@skein/base'
import type { RuntimeEvent } from '@skein/runtime'

/*
 * What a played event need not have in common with the recorded one. docs/guides/replay.md has the same list for users.
 */

/** Members of events with times and durations: the recorded ones are stored. Those of application data are compared. */
const TIMES: readonly string[] = [
  '/at',
  '/durationMs',
  '/firstTokenMs',
  '/expiresAt',
  '/retryAt',
  '/runAt',
  '/message/timestamp',
  '/agent/created_at',
]
/** Members of events about processes: the span of telemetry, the stack of an error. */
const PROCESS: readonly string[] = ['/trace', '/cause', '/epoch']
const UNCOMPARED: ReadonlySet<string> = new Set([...TIMES, ...PROCESS])

/** Texts that the runtime makes, in which it may name a time, e.g. when a model is asked again. */
const TEXTS_WITH_TIMES: ReadonlySet<string> = new Set([
  'status_changed/text',
  'subagent_updated/statusText',
  'step_failed/message',
  'step_failed/hint',
  'error_raised/message',
  'error_raised/hint',
])

/**
 * Members that say how the messages of a request are stored, as a difference to an earlier request, which depends on what
 * a process still had in memory. The player compares the messages themselves.
 */
const ENCODING: ReadonlySet<string> = new Set(['previous', 'adds'])

/** The ids that were made in a played run, and the recorded ids that they stand for. */
export interface IdBinding {
  /** Whether this id was made by the run. */
  isMade(id: string): boolean
  readonly recorded: Map<string, string>
}

/** Where two events differ: a JSON pointer, or undefined. */
export function eventDifference(
  produced: RuntimeEvent,
  recorded: RuntimeEvent,
  binding: IdBinding,
): string | undefined {
  if (produced.type !== recorded.type) return '/type'
  return difference(produced, recorded, { path: '', event: recorded, binding })
}

interface Place {
  readonly path: string
  /** The recorded event. */
  readonly event: RuntimeEvent
  readonly binding: IdBinding
}

function difference(produced: unknown, recorded: unknown, place: Place): string | undefined {
  const { path, event, binding } = place
  if (produced === recorded || isUncompared(place) || isSigned(path)) return undefined
  if (isSecret(place) && isSealed(produced) && isSealed(recorded)) return undefined
  if (typeof produced === 'string' && typeof recorded === 'string') {
    const mayName = TEXTS_WITH_TIMES.has(`${event.type}${path}`)
    const [own, other] = [produced, recorded].map((text) =>
      unhashed(mayName ? timeless(text) : text),
    )
    return bind(own!, other!, binding) ? undefined : path
  }
  if (Array.isArray(produced) && Array.isArray(recorded)) {
    if (produced.length !== recorded.length) return path
    for (const [index, one] of produced.entries()) {
      const found = difference(one, recorded[index], { ...place, path: `${path}/${index}` })
      if (found !== undefined) return found
    }
    return undefined
  }
  if (!isObject(produced) || !isObject(recorded)) return path
  const isRequest = path === '' && produced['type'] === 'model_requested'
  for (const key of new Set([...Object.keys(produced), ...Object.keys(recorded)])) {
    if (isRequest && ENCODING.has(key)) continue
    const inner = { ...place, path: `${path}/${key}` }
    const found = difference(produced[key], recorded[key], inner)
    if (found !== undefined) return found
  }
  return undefined
}

function isUncompared({ path, event }: Place): boolean {
  if (UNCOMPARED.has(path)) return true
  // The files of a call, as they were when the call was made.
  return event.type === 'variables_requested' && /^\/attachments\/\d+\/writtenAt$/.test(path)
}

/** A text without the times in it. */
function timeless(text: string): string {
  return text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'a time')
}

/** A text without the hashes of ids that are in the paths of attachments. */
function unhashed(text: string): string {
  return text.replace(/(\/attachments\/[^\s"/]*-)[0-9a-f]{8}(?=[.\s",]|$)/g, '$1hash')
}

/** Whether a member is signed with keys of the installation that recorded the thread, so that no other can make it. */
function isSigned(path: string): boolean {
  return path === '/interrupt/request' || path === '/answer/token' || path === '/grant'
}

/** Whether the runtime stores an encrypted secret here. */
function isSecret({ path, event }: Place): boolean {
  switch (event.type) {
    case 'env_set':
      return path === '/value' && event.valueType === 'secret'
    case 'variables_provided': {
      const name = /^\/values\/(.+)\/value$/.exec(path)?.[1]
      return name !== undefined && event.values[name]?.valueType === 'secret'
    }
    case 'custom_event':
      return path === '/data/sealed' && event.name === 'approval_given'
    default:
      return false
  }
}

/** Whether a value is an encrypted secret. Each encryption of the same secret gives another text. */
function isSealed(value: unknown): boolean {
  return typeof value === 'string' && /^v\d+\.[\w-]+(?:\.[\w-]+)?$/.test(value)
}

/** An id that the runtime or a governor makes. */
export const UUID: RegExp = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g
/** The digest that follows the id of a message in the log of requests. It covers the message's own id and time. */
const DIGEST = /^#[0-9a-f]{24}$/

/** Whether a text equals the recorded one when its new ids are replaced by recorded ids, each always by the same one. */
function bind(produced: string, recorded: string, binding: IdBinding): boolean {
  let rest = recorded
  let from = 0
  const bound: [string, string][] = []
  for (const { 0: id, index } of produced.matchAll(UUID)) {
    if (!binding.isMade(id)) continue
    const before = produced.slice(from, index)
    if (!rest.startsWith(before)) return false
    rest = rest.slice(before.length)
    from = index + id.length
    const following = produced.slice(from, nextMade(produced, from, binding))
    const until =
      following === '' || DIGEST.test(following) ? idLength(rest) : rest.indexOf(following)
    if (until < 0) return false
    const own = rest.slice(0, until)
    const known = binding.recorded.get(id)
    if (known !== undefined && known !== own) return false
    bound.push([id, own])
    rest = rest.slice(until)
  }
  if (from === 0) return produced === recorded // no id is new
  const tail = produced.slice(from)
  if (rest !== tail && !(DIGEST.test(tail) && DIGEST.test(rest))) return false
  for (const [id, own] of bound) binding.recorded.set(id, own)
  return true
}

function nextMade(text: string, from: number, binding: IdBinding): number {
  for (const { 0: id, index } of text.slice(from).matchAll(UUID))
    if (binding.isMade(id)) return from + index
  return text.length
}

/** How many characters at the start of a text are an id. */
function idLength(text: string): number {
  const found = text.match(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/)
  if (found) return found[0].length
  const end = text.search(/[#/.\s]/)
  return end < 0 ? text.length : end
}

/** Returns the event to store: the recorded one, with the parts that this installation has signed itself. */
export function storedEvent(produced: RuntimeEvent, recorded: RuntimeEvent): RuntimeEvent {
  if (produced.type === 'interrupt_opened' && recorded.type === 'interrupt_opened') {
    if (recorded.interrupt.kind !== 'approval') return recorded
    return {
      ...recorded,
      interrupt: { ...recorded.interrupt, request: produced.interrupt.request },
    }
  }
  if (produced.type === 'interrupt_answered' && recorded.type === 'interrupt_answered') {
    if (produced.answer.type !== 'approve' || recorded.answer.type !== 'approve') return recorded
    return { ...recorded, answer: { ...recorded.answer, token: produced.answer.token } }
  }
  if (produced.type === 'grant_made' && recorded.type === 'grant_made')
    return { ...recorded, grant: produced.grant }
  return recorded
}
