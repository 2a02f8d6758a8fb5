import type { ApprovalRequest } from '@skein/governance'
import type { InterruptAnswer } from '@skein/threads'
import type { ApiContext } from './api-context.ts'
import { approvalOf } from './approval-request.ts'
import { RuntimeError } from '../contract/error.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { ApprovalDecision } from '../contract/inbox.ts'
import type { WaitingItem } from '../contract/waiting-item.ts'
import type { KernelState, OpenInterrupt } from '../state/kernel-state.ts'

/** Throws if the person has seen another request than the one that waits. */
export function checkSeenDigest({ interrupt }: OpenInterrupt, { interruptId, digest }: ApprovalDecision): void {
  if (digest === undefined || digest === approvalOf(interrupt.request)?.digest) return
  throw new RuntimeError(`The decision about ${interruptId} was made on another call.`, {
    code: 'ANSWER_INVALID',
    hint: 'List what waits again: the digest is not that of the call that would run.',
  })
}

/** Throws if the policy excludes the person from approving. */
export function checkNotExcluded({ excluded }: ApprovalRequest, interruptId: string, by: string): void {
  if (!excluded.includes(by)) return
  throw new RuntimeError(`${by} may not approve ${interruptId}.`, {
    code: 'ANSWER_INVALID',
    hint: 'The policy excludes them, e.g. because they asked for the action. Someone else has to approve.',
  })
}

/** A question of a thread, and who answers it. */
export interface QuestionPlace {
  readonly threadId: string
  readonly interruptId: string
  readonly by?: string
}

/** Creates the event that records an answer. */
export function answerEvent(
  context: ApiContext,
  { interruptId, by }: { readonly interruptId: string; readonly by?: string },
  answer: InterruptAnswer,
): RuntimeEvent {
  const answeredBy = by !== undefined && { answeredBy: by }
  return { type: 'interrupt_answered', at: context.at(), interruptId, answer, ...answeredBy }
}

/** Finds a question that can still be answered as one of the kind `kind`; otherwise throws what is wrong. */
export function openQuestion(
  { clock }: ApiContext,
  state: KernelState,
  interruptId: string,
  kind: WaitingItem['kind'],
): OpenInterrupt {
  const open = state.interrupts.get(interruptId)
  if (!open && state.variables.has(interruptId))
    throw new RuntimeError(`The request ${interruptId} asks for variables and is no call.`, {
      code: 'ANSWER_INVALID',
      hint: 'Give the values with `threads.variables.provide`, or POST them to /threads/{id}/variables/{request}.',
    })
  if (!open)
    throw new RuntimeError(`Thread ${state.threadId} has no open request ${interruptId}.`, {
      code: 'INTERRUPT_NOT_FOUND',
      hint: 'It may have been answered already; `inbox.list` lists what is open.',
    })
  if (open.answer) throw answeredBefore(state.threadId, interruptId)
  if (open.interrupt.kind !== kind)
    throw new RuntimeError(
      `The request ${interruptId} is of kind "${open.interrupt.kind}" and cannot be answered as "${kind}".`,
      {
        code: 'ANSWER_INVALID',
        hint: 'Approve or deny approvals; settle calls in doubt; answer questions and tools that run at the client with a result or an error.',
      },
    )
  if (open.expiresAt !== undefined && Date.parse(open.expiresAt) <= clock.now())
    throw new RuntimeError(`The request ${interruptId} expired at ${open.expiresAt}.`, {
      code: 'REQUEST_EXPIRED',
    })
  return open
}

/** Creates the error for a question that has its answer. */
export function answeredBefore(threadId: string, interruptId: string): RuntimeError {
  return new RuntimeError(`The request ${interruptId} of thread ${threadId} was answered before.`, {
    code: 'ALREADY_ANSWERED',
    hint: 'The first answer counts. Where several people have to approve, each of them counts once.',
  })
}
