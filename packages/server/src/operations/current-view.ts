import type { ThreadIdentity } from './thread-identity.ts'
import { type ThreadView, threadView, ViewFold } from '@skein/runtime/view'
import type { Runtime, Store } from '@skein/runtime'

/** The cached view of a thread, computed from its log up to the event `seq`. */
interface KeptView {
  readonly logId: number
  readonly fold: ViewFold
  seq: number
}

const keptViews = new WeakMap<Runtime, Map<string, KeptView>>()

/** Views of shorter threads are not kept, because computing them is fast. */
const MIN_KEPT_EVENTS = 500

const MAX_KEPT_VIEWS = 32

/**
 * Returns the view of a thread now. Views of long threads are cached, so that the next call processes only
 * new events. Only the store tells whether a log was replaced, so nothing is cached without a store.
 */
export async function currentView(
  runtime: Runtime & { readonly store?: Pick<Store, 'head'> },
  { id, seq }: ThreadIdentity,
): Promise<ThreadView> {
  const { store, threads } = runtime
  const logId = seq < MIN_KEPT_EVENTS ? undefined : (await store?.head(id))?.logId
  if (logId === undefined) return threadView(await threads.events(id))
  const views = keptViews.get(runtime) ?? new Map<string, KeptView>()
  keptViews.set(runtime, views)
  const earlier = views.get(id)
  const view = earlier?.logId === logId ? earlier : { logId, fold: new ViewFold(), seq: 0 }
  const events = await threads.events(id, { after: view.seq })
  // The log may have been erased and replaced while it was read; the cached view is then wrong.
  if ((await store?.head(id))?.logId !== logId) return threadView(await threads.events(id))
  for (const { seq: number, event } of events) {
    if (number <= view.seq) continue // another reader was faster
    view.fold.push(event, number)
    view.seq = number
  }
  views.delete(id)
  views.set(id, view)
  if (views.size > MAX_KEPT_VIEWS) views.delete(views.keys().next().value!)
  return view.fold.view
}
