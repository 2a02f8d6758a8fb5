import { RuntimeError } from '../error.ts'
import type { RuntimeEvent, RuntimeThreadCreated, StoredEvent } from '../event.ts'
import { KernelFold } from '../fold/fold.ts'
import type { KernelState } from '../state.ts'
import type { Blob, ThreadHead } from '../store/store.ts'
import { headOf, toRuntimeError, type ApiContext } from './api-context.ts'
import { settleCopied } from './settle-copied.ts'

export interface Copy {
  readonly id: string
  readonly tenant: string
  readonly owner: string | null
  readonly title: string | null
  readonly tags: readonly string[]
  /** Begins with `thread_created` of this thread. */
  readonly events: readonly RuntimeEvent[]
  readonly blobs?: readonly Blob[]
  readonly point: string
}

/** Stores a copied history as a new thread of its own, at rest. */
export async function storeCopy(context: ApiContext, copy: Copy): Promise<ThreadHead> {
  const { id, tenant, owner, title, tags, events, blobs = [], point } = copy
  const state = foldCopied(events)
  const append = [...events, ...settleCopied(state, context.at())]
  // The agent may have changed by a handoff; the name must still be known.
  const { name: agent } = context.registry.agent(state.agent)
  const create = {
    tenant,
    owner,
    agent,
    parentId: null,
    rootId: id,
    title,
    tags,
    clientId: null,
    createdAt: context.clock.now(),
  }
  try {
    await context.commit({ point, threads: [{ id, create, append }], blobs })
  } catch (error) {
    throw toRuntimeError(error)
  }
  return headOf(context, id)
}

/** The first event of a copy: a thread without parent. */
export function rootCreated(
  event: RuntimeThreadCreated,
  { id, title }: { readonly id: string; readonly title: string | null },
): RuntimeThreadCreated {
  const { parent: _parent, parentThreadId: _id, title: _title, ...rest } = event
  return { ...rest, threadId: id, depth: 0, ...(title !== null && { title }) }
}

function foldCopied(events: readonly RuntimeEvent[]): KernelState {
  const fold = new KernelFold()
  events.forEach((event, index) => pushChecked(fold, { seq: index + 1, event }, index + 1))
  return fold.state
}

/** Folds one event; one that cannot be folded is refused with its line. */
export function pushChecked(fold: KernelFold, stored: StoredEvent, line: number): void {
  try {
    fold.push(stored)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new RuntimeError(`Line ${line} cannot be read: ${why}`, { code: 'INPUT_INVALID', cause })
  }
}
