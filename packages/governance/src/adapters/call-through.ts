import { decodeBase64, encodeBase64, isPlainObject, type JsonValue } from '@skein/base'
import type { GovernedTool } from '../contract/governed.ts'
import { isNamedCall } from '../journal/governor-state.ts'
import type { Run } from '../contract/run.ts'

/** The part of a run that adapters of tools use. */
export type CallingRun = Pick<Run, 'call'>

/** The part of a run that recorded models use. */
export type RecordingRun = Pick<Run, 'step'>

/**
 * Calls a tool for a framework. The framework's id of the call is used as the call id in the journal.
 * When the framework repeats a step, on resume or retry, the recorded result is found under this id and
 * the call is not made twice.
 */
export async function callThrough(
  run: CallingRun,
  tool: GovernedTool,
  args: unknown,
  id: string | undefined,
): Promise<JsonValue> {
  const options = id !== undefined && id !== '' && isNamedCall(id) ? { id } : {}
  // The arguments come from a model and are not checked here; the tool's own `run` checks them.
  const { result } = await run.call(tool, args as never, options)
  return result as JsonValue
}

/**
 * Asks a model once and records its answer. When the run's function is executed again, the recorded answer is
 * returned and the model is not asked. The framework gets the recorded form of the answer in both cases.
 */
export async function recordAnswer<T>(
  run: RecordingRun,
  name: string,
  ask: () => Promise<T>,
): Promise<T> {
  const record = await run.step(name, async () => toRecord(await ask()))
  return fromRecord(record) as T
}

/**
 * Like `recordAnswer` for a model that streams. Parts are passed on as they arrive, until `isHeld` returns
 * true for one: a framework may run tools when it gets that part, so the whole answer has to be in the
 * journal first.
 */
export async function* recordStream<T>(
  run: RecordingRun,
  name: string,
  ask: () => AsyncIterable<T> | Promise<AsyncIterable<T>>,
  isHeld: (part: T) => boolean,
): AsyncGenerator<T, void> {
  const live: T[] = []
  let isOver = false
  let wake = (): void => undefined
  const recording = run.step(name, async () => {
    const parts: JsonValue[] = []
    let holds = false
    for await (const part of await ask()) {
      parts.push(toRecord(part))
      holds ||= isHeld(part)
      if (holds) continue
      live.push(part)
      wake()
    }
    return parts
  })
  const end = (): void => {
    isOver = true
    wake()
  }
  recording.then(end, end)
  let position = 0
  for (;;) {
    const part = live[position]
    if (part !== undefined) {
      position += 1
      yield part
    } else if (isOver) break
    else await new Promise<void>((resolve) => (wake = resolve))
  }
  for (const part of (await recording).slice(position)) yield fromRecord(part) as T
}

/** The member that marks a recorded value that is not JSON, or an object that has a member of this name itself. */
const MARK = '$skein'

/**
 * Converts an answer to JSON. Dates, bytes and addresses are marked, so that they come back as what they
 * were; members that are undefined or functions are left out.
 */
function toRecord(value: unknown): JsonValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  if (value instanceof Date) return { [MARK]: 'date', value: value.getTime() }
  if (value instanceof URL) return { [MARK]: 'url', value: value.href }
  if (value instanceof Uint8Array) return { [MARK]: 'bytes', value: encodeBase64(value) }
  if (value instanceof Error) return { name: value.name, message: value.message }
  if (Array.isArray(value)) return value.map(toRecord)
  if (typeof value !== 'object') return null
  const members = Object.entries(value).filter(
    ([, member]) => member !== undefined && typeof member !== 'function',
  )
  const record = Object.fromEntries(members.map(([name, member]) => [name, toRecord(member)]))
  return MARK in record ? { [MARK]: 'object', value: record } : record
}

/** Reads back what `toRecord` wrote. The result is a new object, which the framework may change. */
function fromRecord(value: JsonValue): unknown {
  if (Array.isArray(value)) return value.map(fromRecord)
  if (!isPlainObject(value)) return value
  const { [MARK]: mark, value: inner } = value as Record<string, JsonValue>
  if (mark === 'date') return new Date(inner as number)
  if (mark === 'url') return new URL(inner as string)
  if (mark === 'bytes') return decodeBase64(inner as string)
  const members = Object.entries((mark === 'object' ? inner : value) as Record<string, JsonValue>)
  return Object.fromEntries(members.map(([name, member]) => [name, fromRecord(member)]))
}

/**
 * Returns an object that reads like `object`, except for the members given. The methods of `object` get
 * `object` itself as `this`, because they may use private members.
 */
export function overlay<T extends object>(
  object: T,
  members: Readonly<Record<string, unknown>>,
): T {
  // The target inherits from `object` instead of being it, because a proxy may not replace the fixed
  // members of its target.
  return new Proxy(Object.create(object) as T, {
    get: (_target, key): unknown => {
      if (typeof key === 'string' && Object.hasOwn(members, key)) return members[key]
      const value: unknown = Reflect.get(object, key, object)
      return typeof value === 'function' && key !== 'constructor'
        ? (value.bind(object) as unknown)
        : value
    },
  })
}
