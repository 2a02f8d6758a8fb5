import { isPlainObject } from '@skein/base'
import type { CustomEvent } from '@skein/threads'
import type { ApiContext } from './api-context.ts'

/** The name of the event that keeps one. */
export const APPROVAL_GIVEN = 'approval_given'

/** One person's approval of something that more than one has to approve. */
export interface PartialApproval {
  readonly by: string
  readonly tokens: readonly string[]
}

/** Approvals given so far. They are in the log, where the answer will be when there are enough. */
export async function partialApprovals(
  { store, vault }: ApiContext,
  threadId: string,
  interruptId: string,
): Promise<readonly PartialApproval[]> {
  const given: PartialApproval[] = []
  for (const { event } of await store.events(threadId)) {
    if (
      event.type !== 'custom_event' ||
      event.name !== APPROVAL_GIVEN ||
      !isPlainObject(event.data)
    )
      continue
    const { interruptId: of, by, sealed } = event.data
    if (of !== interruptId || typeof by !== 'string' || typeof sealed !== 'string') continue
    const tokens = JSON.parse(vault.open(sealed, contextOf(threadId, interruptId))) as string[] // written below
    given.push({ by, tokens })
  }
  return given
}

/** The event of one such approval. Its tokens are sealed: nobody else may hand them in. */
export function approvalGiven(
  context: ApiContext,
  item: { readonly threadId: string; readonly interruptId: string },
  { by, tokens }: PartialApproval,
): CustomEvent {
  const { threadId, interruptId } = item
  const sealed = context.vault.seal(JSON.stringify(tokens), contextOf(threadId, interruptId))
  const data = { interruptId, by, sealed }
  // Transient for those who fold it: it is bookkeeping, not something that was said.
  return { type: 'custom_event', at: context.at(), name: APPROVAL_GIVEN, data, isTransient: true }
}

function contextOf(threadId: string, interruptId: string): string {
  return `${threadId}/approval/${interruptId}`
}
