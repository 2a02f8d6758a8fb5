import { isPlainObject } from '@skein/base'
import type { CustomEvent } from '@skein/threads'
import type { ApiContext } from './api-context.ts'
import type { QuestionPlace } from './open-question.ts'

/** The name of the event that records one person's approval where several people have to approve. */
export const APPROVAL_GIVEN = 'approval_given'

/**
 * Returns the event of one person's approval. The tokens are encrypted, so that no one else can use them. The
 * event is transient, because it is bookkeeping and not part of the conversation.
 */
export function partialApprovalEvent(
  context: ApiContext,
  { threadId, interruptId, by }: QuestionPlace,
  tokens: readonly string[],
): CustomEvent {
  const sealed = context.vault.seal(JSON.stringify(tokens), sealContext(threadId, interruptId))
  return {
    type: 'custom_event',
    at: context.at(),
    name: APPROVAL_GIVEN,
    data: { interruptId, by, sealed },
    isTransient: true,
  }
}

/** One person's approval of a call that several people have to approve. */
interface PartialApproval {
  readonly by: string
  readonly tokens: readonly string[]
}

/** Reads from the log the approvals that a waiting call has received so far. */
export async function partialApprovals(
  { store, vault }: ApiContext,
  threadId: string,
  interruptId: string,
): Promise<readonly PartialApproval[]> {
  const approvals: PartialApproval[] = []
  for (const { event } of await store.events(threadId)) {
    if (
      event.type !== 'custom_event' ||
      event.name !== APPROVAL_GIVEN ||
      !isPlainObject(event.data)
    )
      continue
    const { interruptId: of, by, sealed } = event.data
    if (of !== interruptId || typeof by !== 'string' || typeof sealed !== 'string') continue
    // `approve` sealed these tokens as a JSON list.
    const tokens = JSON.parse(vault.open(sealed, sealContext(threadId, interruptId))) as string[]
    approvals.push({ by, tokens })
  }
  return approvals
}

function sealContext(threadId: string, interruptId: string): string {
  return `${threadId}/approval/${interruptId}`
}
