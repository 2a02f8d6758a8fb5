import { envSet, isSecret, scopedNames } from './env.ts'
import type { KernelEnvironment } from '../context/environment.ts'
import type { Write } from '../context/write.ts'
import type { EnvSet, MessageQueued, RuntimeEvent } from '../contract/event.ts'
import type { KernelState } from '../state/kernel-state.ts'
import { catchUpFold, KernelFold } from '../state/fold.ts'
import { envContext } from '../secrets/vault.ts'
import type { FacadeChanges } from './facade.ts'
import { type CopiedFiles, findFiles, copyFiles } from './copied-files.ts'
import type { ThreadPlace } from '../context/drain-context.ts'
import { descendantsOf } from '../store/descendants.ts'
import type { ThreadHead } from '../store/head.ts'
import type { ThreadChange } from '../store/commit.ts'

/** The changes that user code made through the facade, in the form of a commit. */
export type ChangesWrite = Required<Pick<Write, 'events' | 'others' | 'blobs'>> &
  Pick<Write, 'head' | 'values'>

/** Converts the changes that user code made into writes to this thread, to its parent and to its descendants. */
export async function writeOf(context: ThreadPlace, changes: FacadeChanges): Promise<ChangesWrite> {
  const { blobs, stopSession, terminates, toParent, values } = changes
  const at = context.at()
  const events = [...changes.events]
  if (stopSession)
    events.push({
      type: 'session_stop_requested',
      at,
      isFailure: stopSession.failed,
      message: stopSession.result,
      attachments: stopSession.attachments,
    })
  const others: ThreadChange[] = []
  for (const notice of toParent)
    others.push(...(await noticeToParent(context, notice, changes.events)))
  others.push(...(await inheritedChanges(context, changes.events)))
  if (!terminates) return { events, others, blobs, values }
  events.push({ type: 'thread_terminated', at })
  const parent = (await liveParent(context)) === undefined ? undefined : context.state.parent
  const reference = context.head.id
  const end = { type: 'subagent_ended', at, reference, outcome: 'terminated' } as const
  const wake = { by: context.environment.clock.now() }
  if (parent) others.push({ id: parent.threadId, mustBeLive: true, append: [end], wake })
  return { events, others, blobs, values, head: { lifecycle: 'terminated' } }
}

/** Returns the changes that pass newly set variables on to descendants that have not ended, for the same commit. */
async function inheritedChanges(
  context: ThreadPlace,
  events: readonly RuntimeEvent[],
): Promise<readonly ThreadChange[]> {
  const settings = events.filter(
    (event): event is EnvSet => event.type === 'env_set' && !event.isScoped,
  )
  if (settings.length === 0 || context.state.children.size === 0) return []
  const { environment, head } = context
  const { store } = environment
  const parts = {
    ...environment,
    at: () => context.at(),
    load: async (id: string) => {
      const fold = new KernelFold()
      const { logId = 0 } = (await store.head(id)) ?? {}
      await catchUpFold(fold, store, { threadId: id, logId })
      return fold.state
    },
  }
  const changes: ThreadChange[] = []
  for (const { name, value, valueType } of settings) {
    const isSealed = value !== null && valueType === 'secret'
    const open = isSealed ? environment.vault.open(value, envContext(head.id, name)) : value
    changes.push(...(await inheritedEnv(parts, head, { name, valueType, value: open })))
  }
  return changes
}

/** Returns the event that queues a text message in another thread, with the files that were copied for it. */
export function queuedText(
  context: ThreadPlace,
  { text, files }: { readonly text: string; readonly files: CopiedFiles },
  rest: Pick<MessageQueued, 'role'> & Partial<MessageQueued>,
): MessageQueued {
  const at = context.at()
  const id = context.environment.ids()
  return {
    type: 'message_queued',
    at,
    queueId: id,
    message: { id, type: 'user', timestamp: at, content: [{ type: 'text', text }] },
    attachments: files.paths.length > 0 ? files.paths : undefined,
    ...rest,
  }
}

/**
 * Returns the event that queues a text with its files at the parent, as a message that is not shown to
 * people and names this child. The file paths are those of the copies in the parent.
 */
export function silentMessage(
  context: ThreadPlace,
  text: string,
  files: CopiedFiles,
): RuntimeEvent {
  const subagentId = context.head.id
  return queuedText(context, { text, files }, { role: 'user', isSilent: true, subagentId })
}

/** Returns a text, followed by the paths of files, one per line. */
export function withPaths(text: string, { paths }: CopiedFiles): string {
  return paths.length === 0 ? text : [text, '', ...paths].join('\n')
}

/**
 * Returns the changes for `state.notifyParent`: they queue a message at the parent that is not shown to people.
 * `pending` contains uncommitted events of the same call. Nothing is sent to a parent that was terminated or erased.
 */
async function noticeToParent(
  context: ThreadPlace,
  { text, attachments }: { readonly text: string; readonly attachments: readonly string[] },
  pending: readonly RuntimeEvent[],
): Promise<readonly ThreadChange[]> {
  const parentId = await liveParent(context)
  if (parentId === undefined) return []
  const { ids, clock } = context.environment
  const files = copyFiles(context, findFiles(context, attachments, pending), ids())
  const append = [...files.events, silentMessage(context, withPaths(text, files), files)]
  return [{ id: parentId, mustBeLive: true, append, wake: { by: clock.now() } }]
}

/** Returns the id of the parent; undefined if there is none or it was terminated or erased. */
export async function liveParent({ state, environment }: ThreadPlace): Promise<string | undefined> {
  if (!state.parent) return undefined
  const head = await environment.store.head(state.parent.threadId)
  const isOver = !head || head.lifecycle === 'terminated' || head.lifecycle === 'erased'
  return isOver ? undefined : head.id
}

/** A variable that was set, with its value in plain text. */
interface EnvSetting {
  readonly name: string
  readonly value: string | null
  readonly valueType: 'text' | 'secret'
}

interface InheritingEnv extends Pick<
  KernelEnvironment,
  'store' | 'registry' | 'vault' | 'instanceEnv'
> {
  at(): string
  /** Returns the state of a descendant, computed from its log. */
  load(threadId: string): Promise<KernelState | undefined>
}

/**
 * Returns the changes that set a variable in every descendant that inherits it and has not ended. A thread
 * does not inherit a variable that its parent's agent reserves for particular children, or of which it has
 * a reserved (scoped) value of its own; the threads below such a thread do not inherit it either.
 */
export async function inheritedEnv(
  parts: InheritingEnv,
  head: Pick<ThreadHead, 'id' | 'rootId' | 'agent'>,
  setting: EnvSetting,
): Promise<readonly ThreadChange[]> {
  const changes: ThreadChange[] = []
  const agents = new Map([[head.id, head.agent]])
  for (const { id, parentId, lifecycle, agent } of await descendantsOf(parts, head)) {
    const parent = parts.registry.agents.get(agents.get(parentId ?? '') ?? '')
    if (!parent || scopedNames(parent).has(setting.name)) continue
    const state = await parts.load(id)
    if (!state || state.env.get(setting.name)?.isScoped) continue
    agents.set(id, agent)
    if (lifecycle === 'terminated' || lifecycle === 'erased') continue
    const valueType = isSecret(parts, state, setting.name) ? 'secret' : setting.valueType
    const event = { ...setting, valueType, threadId: id, vault: parts.vault, at: parts.at() }
    changes.push({ id, append: [envSet(event)] })
  }
  return changes
}
