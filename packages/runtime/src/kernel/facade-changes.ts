import type { ResolvedSide } from '../definitions/resolved.ts'
import type { EnvSet, RuntimeEvent } from '../event.ts'
import { inheritedEnv } from '../services/inherited-env.ts'
import type { FacadeChanges } from '../services/thread-facade.ts'
import { envContext } from '../services/vault.ts'
import type { ThreadChange } from '../store/store.ts'
import type { DrainContext, ThreadPlace, Write } from './drain-context.ts'
import { foldKernel } from './fold.ts'
import { messagesThroughHooks } from './message-hooks.ts'
import { noticeToParent } from './report.ts'

type ChangesWrite = Required<Pick<Write, 'events' | 'others' | 'blobs'>> & Pick<Write, 'head'>

/** The same for a tool or an effect: the hooks of its side see the messages. */
export async function hookedWriteOf(
  context: DrainContext,
  changes: FacadeChanges,
  side: ResolvedSide | undefined,
): Promise<ChangesWrite> {
  const write = await writeOf(context, changes)
  if (!side) return write
  return { ...write, events: await messagesThroughHooks(context, side, write.events) }
}

/**
 * What was changed through a facade, as part of a commit: here, at the parent, at descendants. Messages
 * of a hook are not shown to hooks, or there would be no end.
 */
export async function writeOf(context: ThreadPlace, changes: FacadeChanges): Promise<ChangesWrite> {
  const { blobs, terminates } = changes
  return {
    events: eventsOf(context, changes),
    others: [
      ...(await noticesOf(context, changes)),
      ...(await handedDown(context, changes)),
      ...(terminates ? terminated(context) : []),
    ],
    blobs,
    ...(terminates && { head: { lifecycle: 'terminated' as const } }),
  }
}

function eventsOf(context: ThreadPlace, changes: FacadeChanges): RuntimeEvent[] {
  const { events, stopSession, terminates } = changes
  const at = context.at()
  const stop = stopSession && {
    type: 'session_stop_requested' as const,
    at,
    isFailure: stopSession.failed,
    message: stopSession.result,
    attachments: stopSession.attachments,
  }
  return [
    ...events,
    ...(stop ? [stop] : []),
    ...(terminates ? [{ type: 'thread_terminated', at } as const] : []),
  ]
}

async function noticesOf(
  context: ThreadPlace,
  { toParent, events }: FacadeChanges,
): Promise<readonly ThreadChange[]> {
  const changed = await Promise.all(
    toParent.map((notice) => noticeToParent(context, notice, events)),
  )
  return changed.flat()
}

/** Variables reach live descendants in the same commit. */
async function handedDown(
  context: ThreadPlace,
  { events }: FacadeChanges,
): Promise<readonly ThreadChange[]> {
  const set = events.filter((event): event is EnvSet => event.type === 'env_set' && !event.isScoped)
  if (set.length === 0 || context.state.children.size === 0) return []
  const { environment, head } = context
  const { store } = environment
  const parts = {
    ...environment,
    at: () => context.at(),
    load: async (id: string) => foldKernel(await store.events(id)),
  }
  const changes: ThreadChange[] = []
  for (const { name, value, valueType } of set) {
    const isSealed = value !== null && valueType === 'secret'
    const open = isSealed ? environment.vault.open(value, envContext(head.id, name)) : value
    changes.push(...(await inheritedEnv(parts, head, { name, valueType, value: open })))
  }
  return changes
}

/** The parent hears that a child ended itself. */
function terminated(context: ThreadPlace): ThreadChange[] {
  const { parent } = context.state
  if (!parent) return []
  const ended = {
    type: 'subagent_ended',
    at: context.at(),
    reference: context.head.id,
    outcome: 'terminated',
  } as const
  return [{ id: parent.threadId, append: [ended] }]
}
