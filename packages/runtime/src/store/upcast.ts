import { isPlainObject } from '@skein/base'
import type { Store } from './store.ts'
import { RuntimeError } from '../contract/error.ts'
import { EVENT_VERSION, type RuntimeEvent, type StoredEvent } from '../contract/event.ts'

/**
 * Converts events of version `from` to the next version. It is called for every event of a thread whose log
 * began with version `from` or earlier, even for events that a later version wrote: an event that already has
 * the new shape must be returned unchanged.
 */
export interface Upcaster {
  readonly from: number
  upcast(event: RuntimeEvent): RuntimeEvent
}

/** The versions of events that a program can read. */
export interface EventVersions {
  readonly current: number
  /**
   * The upcasters in order: one for each older version whose events differ from those of the next version.
   */
  readonly upcasters: readonly Upcaster[]
}

/**
 * The versions that this program reads. A new version raises `EVENT_VERSION`, adds its upcaster here, and
 * adds a step to the store's migrations, so that an older program refuses the whole store and not one
 * thread after the other.
 */
export const eventVersions: EventVersions = {
  current: EVENT_VERSION,
  upcasters: [{ from: 1, upcast: inDoubtAsKind }],
}

/**
 * In version 1, the question whether an interrupted call had its effect was of the kind `input`, like
 * questions to clients. Now it has a kind of its own.
 */
function inDoubtAsKind(event: RuntimeEvent): RuntimeEvent {
  if (event.type !== 'interrupt_opened' || event.interrupt.kind !== 'input') return event
  const { request } = event.interrupt
  if (!isPlainObject(request) || request['type'] !== 'in_doubt') return event
  return { ...event, interrupt: { ...event.interrupt, kind: 'in_doubt' } }
}

/** Throws `LOG_VERSION` for a log that was written in a later version than this program can read. */
export function checkVersion(
  { threadId, version }: { readonly threadId: string; readonly version?: number },
  { current }: EventVersions = eventVersions,
): void {
  if (version === undefined || version <= current) return
  throw new RuntimeError(
    `Thread ${threadId} was written in version ${version}; this program knows ${current}.`,
    {
      code: 'LOG_VERSION',
      hint: 'A newer version of the program has made it. Update; the thread is left as it is.',
    },
  )
}

/** Converts an event of a thread whose log began with `version` to the current version. */
export function upcastEvent(
  event: RuntimeEvent,
  version: number,
  { current, upcasters }: EventVersions = eventVersions,
): RuntimeEvent {
  if (version >= current) return event
  let newest = event
  for (const { from, upcast } of upcasters) if (from >= version) newest = upcast(newest)
  return newest.type === 'thread_created' ? { ...newest, version: current } : newest
}

/** The largest number of threads whose log version is kept in memory. */
const REMEMBERED = 10_000

/**
 * Wraps a store so that its events are read in the current version. Without upcasters it returns the store
 * itself.
 */
export function upcastingStore<S extends Pick<Store, 'events'>>(
  store: S,
  versions: EventVersions = eventVersions,
): S {
  if (versions.upcasters.length === 0) return store
  const logVersions = new Map<string, number>()

  async function versionOf(threadId: string, page: readonly StoredEvent[]): Promise<number> {
    const logVersion = logVersions.get(threadId)
    if (logVersion !== undefined && page[0]?.seq !== 1) return logVersion
    const [first] = page[0]?.seq === 1 ? page : await store.events(threadId, { limit: 1 })
    const version = first?.event.type === 'thread_created' ? first.event.version : versions.current
    if (logVersions.size >= REMEMBERED) logVersions.clear()
    logVersions.set(threadId, version)
    return version
  }

  const events: Store['events'] = async (threadId, options) => {
    const page = await store.events(threadId, options)
    if (page.length === 0) return page
    const version = await versionOf(threadId, page)
    if (version >= versions.current) return page
    return page.map(({ seq, event }) => ({ seq, event: upcastEvent(event, version, versions) }))
  }

  return new Proxy(store, {
    get(target, name) {
      const member: unknown = name === 'events' ? events : Reflect.get(target, name)
      // The method is bound to the store, because it uses the store's private fields, which the proxy does
      // not have.
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}
