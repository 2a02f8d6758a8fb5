import { canonicalJson, SkeinError } from '@skein/base'
import type { FoundEffect, Runtime, ThreadInfo, WaitingItem } from '../../contract/runtime-api.ts'
import { HttpError } from '../../operations/http-error.ts'
import { actorOf, checkFound, checkMayApprove, type Principal } from '../../operations/principal.ts'
import type { ClientAnswer } from './chat-body.ts'

/**
 * Hands the answers of a page to a thread, each once: decisions about approvals, results of tools that ran in
 * the page, and what a person found out about a call in doubt. Answers that the thread does not wait for are
 * skipped. Returns how many were accepted.
 */
export async function giveAnswers(
  runtime: Runtime,
  principal: Principal,
  thread: ThreadInfo,
  answers: readonly ClientAnswer[],
): Promise<number> {
  if (answers.length === 0) return 0
  const { tenant, rootId } = thread
  const waiting = await runtime.inbox.list({ tenant, rootId })
  const given = answers.flatMap((answer) => {
    const item = waiting.find(({ kind, interruptId, threadId, toolCallId }) =>
      answer.type === 'decision'
        ? kind === 'approval' && interruptId === answer.approvalId
        : kind !== 'approval' && threadId === thread.id && toolCallId === answer.toolCallId,
    )
    return item ? [{ item, answer }] : []
  })
  // All answers are checked before the first one is recorded.
  for (const { item, answer } of given) {
    if (item.kind === 'input') continue
    checkMayApprove(principal)
    if (answer.type === 'decision') checkDecision(thread, item, answer)
    else checkFound(item, foundBy(answer))
  }
  let count = 0
  for (const { item, answer } of given) if (await give(runtime, principal, item, answer)) count++
  return count
}

/** Returns what a page says about a call in doubt. A page that only reports a failure does not know. */
function foundBy(answer: Exclude<ClientAnswer, { type: 'decision' }>): unknown {
  return answer.type === 'output' ? answer.output : 'unknown'
}

/** Throws unless the decision was made on the call with exactly the arguments with which it would run. */
function checkDecision(
  thread: ThreadInfo,
  item: WaitingItem,
  { shown }: Extract<ClientAnswer, { type: 'decision' }>,
): void {
  // A child's approval is shown on the call that created the child, so there are no arguments to compare.
  if (item.threadId !== thread.id) return
  const input = shown(item.toolCallId)
  if (input !== undefined && canonicalJson(item.arguments ?? {}) === canonicalJson(input)) return
  throw new HttpError(`The decision ${item.interruptId} is about another call.`, {
    code: 'ANSWER_INVALID',
    hint: 'Load the chat again: the arguments that the page shows are not those that would run.',
  })
}

async function give(
  { inbox }: Runtime,
  principal: Principal,
  { threadId, interruptId, kind }: WaitingItem,
  answer: ClientAnswer,
): Promise<boolean> {
  const item = { threadId, interruptId, by: actorOf(principal) }
  try {
    if (kind === 'in_doubt' && answer.type !== 'decision') {
      await inbox.settle(item, foundBy(answer) as FoundEffect) // checked by `checkFound`
      return true
    }
    switch (answer.type) {
      case 'decision': {
        const { isApproved, reason, with: args } = answer
        if (isApproved) await inbox.approve({ ...item, reason, with: args })
        else await inbox.deny({ ...item, reason: reason ?? 'The person declined.' })
        return true
      }
      case 'output':
        await inbox.answer(item, { type: 'result', value: answer.output })
        return true
      case 'failure':
        await inbox.answer(item, { type: 'error', message: answer.message })
        return true
    }
  } catch (error) {
    // Another page answered first, and only the first answer is accepted.
    if (SkeinError.is(error) && error.code === 'ALREADY_ANSWERED') return false
    throw error
  }
}
