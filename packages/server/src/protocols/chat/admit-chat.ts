import type { ThreadIdentity } from '../../operations/thread-identity.ts'
import { canonicalJson, SkeinError } from '@skein/base'
import type { FoundEffect } from '@skein/runtime/serving'
import type { Runtime, WaitingItem } from '@skein/runtime'
import { HttpError, threadNotFound } from '../../operations/http-error.ts'
import type { Call } from '../../operations/operation.ts'
import {
  accountOf,
  actorOf,
  checkFound,
  checkMayApprove,
  findChat,
  ifFound,
  type Principal,
} from '../../operations/principal.ts'
import type { AnswerStreamOptions } from './answer-stream.ts'
import {
  MAX_NEW_MESSAGES,
  newMessages,
  tooMany,
  type ChatBody,
  type ClientAnswer,
} from './chat-body.ts'
import { childOn } from './approvals-below.ts'
import { findAnswer } from './find-answer.ts'

/** The part of a call that all chat operations use. */
export type ChatCall = Pick<
  Call,
  'request' | 'runtime' | 'principal' | 'services' | 'connection'
> & {
  readonly query: { readonly hold?: boolean; readonly children?: boolean }
}

/** Where the answer to a chat request is found. */
export interface AdmittedChat {
  readonly thread: ThreadIdentity
  /**
   * The answer to stream. Absent when the request has nothing new: every message is in the thread, and the
   * thread waits for none of the answers.
   */
  readonly answer?: Pick<AnswerStreamOptions, 'after' | 'queueId' | 'continues'>
  /** The message that the client wants to continue. */
  readonly messageId?: string
  /** Whether the request repeats the last message, so that its answer is streamed again. */
  readonly isRepeated?: boolean
}

/**
 * Gives what is new in a chat request to its thread, which is created when the chat id is new. All protocols
 * for pages use this function, so that all of them accept the same from a page: new messages of the person,
 * answers to calls that wait, and outputs of tools that run in the page.
 */
export async function admitChat(
  call: ChatCall & { readonly params: { readonly agent: string } },
  body: ChatBody,
): Promise<AdmittedChat> {
  const { runtime, principal, params, services } = call
  // The number of open streams is checked first, so that a request that cannot be answered changes nothing.
  services.streams.checkRoom(accountOf(principal))
  const { chatId } = body
  const isMany = body.messages.length > MAX_NEW_MESSAGES
  if (isMany && !(await ifFound(findChat(runtime, principal, chatId)))) throw tooMany()
  const thread = await openChat(runtime, principal, { chatId, agent: params.agent })
  const place = await findAnswer(runtime, thread.id, thread.seq)
  const messages = await newMessages(runtime, thread, body)
  if (messages.length > MAX_NEW_MESSAGES) throw tooMany()
  let queueId = ''
  const sendAll = async (): Promise<void> => {
    // `ifBusy` is about the first message, which cuts the turn or is refused; the others follow it.
    for (const [place, message] of messages.entries()) {
      const ifBusy = place === 0 ? body.ifBusy : undefined
      ;({ queueId } = await runtime.threads.send(thread.id, { ...message, ifBusy }))
    }
  }
  // With `reject`, the messages are sent first: a request that is refused must not have given answers.
  if (body.ifBusy === 'reject') await sendAll()
  const answerCount = await giveAnswers(runtime, principal, thread, body.answers)
  if (body.ifBusy !== 'reject') await sendAll()

  // A page that names no message and sends no new message continues the message that contains its answers.
  const messageId = body.continued ?? (body.messages.length === 0 ? body.answered : undefined)
  if (messageId !== undefined) {
    if (answerCount === 0) return { thread, messageId }
    const continues = { messageId, seq: place.seq }
    return { thread, messageId, answer: { after: place.after, continues } }
  }
  const { lifecycle } = thread
  if (messages.length > 0) {
    const isAtRest = !['queued', 'running', 'waiting'].includes(lifecycle)
    return { thread, answer: { after: isAtRest ? place.seq : place.after, queueId } }
  }
  if (body.messages.length === 0) return { thread }
  // The thread already has this message: its answer is streamed again, and a failed or stopped thread is
  // resumed.
  if (lifecycle === 'failed' || lifecycle === 'stopped')
    await runtime.threads.resume(thread.id, { by: actorOf(principal) })
  return { thread, answer: { after: place.after }, isRepeated: true }
}

/** Finds the thread of a chat; creates it when the chat id is new. */
export async function openChat(
  runtime: Runtime,
  principal: Principal,
  { chatId, agent }: { readonly chatId: string; readonly agent: string },
): Promise<ThreadIdentity> {
  runtime.registry.agent(agent) // throws when there is no such agent
  const thread = await ifFound(findChat(runtime, principal, chatId))
  if (thread) return thread
  const { tenant, user } = principal
  try {
    return await runtime.threads.create({ agent, tenant, clientId: chatId, owner: user })
  } catch (error) {
    if (!SkeinError.is(error) || error.code !== 'CLIENT_ID_TAKEN') throw error
    // A simultaneous request created the thread first, or the id belongs to another user.
    const winner = await ifFound(findChat(runtime, principal, chatId))
    if (winner) return winner
    throw threadNotFound()
  }
}

/**
 * Hands the answers of a page to a thread, each once: decisions about approvals, results of tools that ran in
 * the page, and what a person found out about a call that a crash interrupted. Answers that the thread does
 * not wait for are skipped. Returns how many were accepted.
 */
async function giveAnswers(
  runtime: Runtime,
  principal: Principal,
  thread: ThreadIdentity,
  answers: readonly ClientAnswer[],
): Promise<number> {
  if (answers.length === 0) return 0
  const { tenant, rootId } = thread
  const waiting = await runtime.inbox.list({ tenant, rootId })
  const decisions: { readonly item: WaitingItem; readonly answer: ClientAnswer }[] = []
  for (const answer of answers) {
    const item = waiting.find(({ kind, interruptId, threadId, toolCallId }) =>
      answer.type === 'decision'
        ? kind === 'approval' && interruptId === answer.approvalId
        : (kind === 'input' || kind === 'in_doubt') &&
          threadId === thread.id &&
          toolCallId === answer.toolCallId,
    )
    if (item && (await isWithin(runtime, thread, item))) decisions.push({ item, answer })
  }
  // All answers are checked before the first one is recorded.
  for (const { item, answer } of decisions) {
    if (item.kind === 'input') continue
    checkMayApprove(principal)
    if (answer.type === 'decision') checkDecision(thread, item, answer)
    else checkFound(item, foundBy(answer))
  }
  let count = 0
  for (const { item, answer } of decisions)
    if (await give(runtime, principal, item, answer)) count++
  return count
}

/** Whether a call waits in the thread or below it. The chat of a child shows nothing of its parent. */
async function isWithin(
  runtime: Runtime,
  { id, parentId }: ThreadIdentity,
  { threadId }: WaitingItem,
): Promise<boolean> {
  if (parentId === null || threadId === id) return true
  return (await childOn(runtime, id, threadId)) !== undefined
}

/**
 * Returns what a page says about a call that a crash interrupted. A page that only reports a failure does not
 * know whether the call had its effect.
 */
function foundBy(answer: Exclude<ClientAnswer, { type: 'decision' }>): unknown {
  return answer.type === 'output' ? answer.output : 'unknown'
}

/** Throws unless the decision was made on the call with exactly the arguments with which it would run. */
function checkDecision(
  thread: ThreadIdentity,
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
