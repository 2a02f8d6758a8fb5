import { canonicalJson, SkeinError, type JsonValue } from '@skein/base'
import type { Runtime, WaitingItem } from '../../runtime-api.ts'
import type { ThreadHead } from '../../store/store.ts'
import { HttpError } from '../../operations/http-error.ts'
import { actorOf, hasScope, type Principal } from '../../operations/principal.ts'
import type { ClientAnswer } from './chat-body.ts'

/**
 * Gives a thread the answers of a page, each once: decisions about what waits for one, and results of
 * tools that run in the page. Anything the thread does not wait for is passed over. Says how many
 * counted.
 */
export async function giveAnswers(
  runtime: Runtime,
  principal: Principal,
  thread: ThreadHead,
  answers: readonly ClientAnswer[],
): Promise<number> {
  if (answers.length === 0) return 0
  const { tenant, rootId } = thread
  const waiting = await runtime.inbox.list({ tenant, rootId })
  const given = answers.flatMap((answer) => {
    const item = waiting.find((one) => isMeant(one, answer, thread))
    return item ? [{ item, answer }] : []
  })
  for (const { item, answer } of given) check(principal, thread, item, answer)
  let count = 0
  for (const { item, answer } of given) if (await give(runtime, principal, item, answer)) count++
  return count
}

function isMeant(item: WaitingItem, answer: ClientAnswer, thread: ThreadHead): boolean {
  if (answer.type === 'decision')
    return item.kind === 'approval' && item.interruptId === answer.approvalId
  return (
    item.kind === 'input' && item.threadId === thread.id && item.toolCallId === answer.toolCallId
  )
}

/** A decision is about what the person saw: the call as the thread has it. */
function check(
  principal: Principal,
  thread: ThreadHead,
  item: WaitingItem,
  { type, toolCallId, input }: ClientAnswer,
): void {
  if (type !== 'decision') return
  if (!hasScope(principal, 'approvals:write'))
    throw new HttpError('Approvals need the scope approvals:write.', { code: 'SCOPE_MISSING' })
  // What a child asks is shown on the call that made the child.
  if (item.threadId !== thread.id) return
  if (item.toolCallId === toolCallId && isSame(item.arguments, input)) return
  throw new HttpError(`The decision ${item.interruptId} is about another call.`, {
    code: 'ANSWER_INVALID',
    hint: 'Load the chat again: the page shows something else than what would run.',
  })
}

function isSame(stored: JsonValue, shown: JsonValue | undefined): boolean {
  return shown !== undefined && canonicalJson(stored ?? {}) === canonicalJson(shown)
}

async function give(
  { inbox }: Runtime,
  principal: Principal,
  { threadId, interruptId }: WaitingItem,
  answer: ClientAnswer,
): Promise<boolean> {
  const item = { threadId, interruptId, by: actorOf(principal) }
  try {
    switch (answer.type) {
      case 'decision': {
        const { isApproved, reason } = answer
        if (isApproved) await inbox.approve({ ...item, ...(reason !== undefined && { reason }) })
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
    // Another page was faster: its answer counts.
    if (SkeinError.is(error) && error.code === 'ALREADY_ANSWERED') return false
    throw error
  }
}
