import type { ThreadIdentity } from '../../operations/thread-identity.ts'
import { SkeinError, type JsonObject, type JsonValue } from '@skein/base'
import { callText, safeText } from '@skein/base/safe-text'
import type { Runtime, WaitingItem } from '@skein/runtime'
import { HttpError } from '../../operations/http-error.ts'
import {
  actorOf,
  checkFound,
  checkMayApprove,
  hasScope,
  type Principal,
} from '../../operations/principal.ts'

/** What another program says about a call that waits. */
export type OutsideAnswer =
  | { readonly type: 'approve'; readonly reason?: string; readonly with?: JsonObject }
  | { readonly type: 'deny'; readonly reason: string }
  | { readonly type: 'settle'; readonly found: unknown }
  | { readonly type: 'result'; readonly value: JsonValue }
  | { readonly type: 'error'; readonly message: string }

/** The call that an answer is about. */
export interface AnsweredCall {
  readonly threadId: string
  readonly interruptId: string
  /** The digest of the request that was shown; approvals need it. */
  readonly digest?: string
}

/**
 * Records an answer to a call that waits in the tree of a thread. Decisions need the scope `approvals:write`,
 * and an approval names the digest of what was shown. Returns false if the call does not wait any more.
 */
export async function giveAnswer(
  { runtime, principal }: { readonly runtime: Runtime; readonly principal: Principal },
  { tenant, rootId }: ThreadIdentity,
  { threadId, interruptId, digest }: AnsweredCall,
  given: OutsideAnswer,
): Promise<boolean> {
  const { inbox } = runtime
  const waiting = await inbox.list({ tenant, rootId })
  const match = waiting.find(
    (item) => item.threadId === threadId && item.interruptId === interruptId,
  )
  if (!match) return false
  if (match.kind !== 'input') checkMayApprove(principal)
  const item = { threadId, interruptId, by: actorOf(principal) }
  try {
    if (match.kind === 'approval' && given.type === 'approve') {
      if (match.request && digest !== match.request.digest)
        throw refused(match, 'Send the digest of the request that the person has seen.')
      const { type: _, ...decision } = given
      await inbox.approve({ ...item, ...decision, digest })
    } else if (match.kind === 'approval' && given.type === 'deny')
      await inbox.deny({ ...item, reason: given.reason })
    else if (match.kind === 'in_doubt' && given.type === 'settle') {
      const { found: effect } = given
      checkFound(match, effect)
      await inbox.settle(item, effect)
    } else if (match.kind === 'input' && (given.type === 'result' || given.type === 'error'))
      await inbox.answer(item, given)
    else throw refused(match, `It waits for an answer of the kind ${match.kind}.`)
    return true
  } catch (error) {
    // Someone else answered first, and only the first answer is accepted.
    if (SkeinError.is(error) && error.code === 'ALREADY_ANSWERED') return false
    throw error
  }
}

function refused({ interruptId }: WaitingItem, hint: string): HttpError {
  return new HttpError(`The answer does not fit the call that waits as ${interruptId}.`, {
    code: 'ANSWER_INVALID',
    hint,
  })
}

/** Whether a client may answer a call that waits. */
export function mayAnswer(principal: Principal, { kind }: WaitingItem): boolean {
  return kind === 'input' || hasScope(principal, 'approvals:write')
}

/** Describes a call that waits, with all that an answer has to name. */
export function waitingForm(item: WaitingItem): JsonObject {
  const { threadId, interruptId, kind, toolName, arguments: args, question, request } = item
  const { isIrreversible, expiresAt } = item
  return {
    threadId,
    interruptId,
    kind,
    tool: toolName,
    arguments: args,
    question: question ?? null,
    digest: request?.digest ?? null,
    isIrreversible: isIrreversible ?? false,
    expiresAt: expiresAt ?? null,
  }
}

/** Describes a call that waits in a sentence for the person who answers. */
export function waitingText(item: WaitingItem): string {
  const { kind, toolName, arguments: args, path, isIrreversible, question } = item
  const who = safeText(path.join(' › '), { isLine: true, maxChars: 200 })
  const whole = safeText(JSON.stringify(args) ?? 'null', { isLine: true })
  const call =
    whole.length <= MAX_SHOWN_CHARS
      ? `${safeText(toolName, { isLine: true, maxChars: 200 })} ${whole}`
      : `${callText(toolName, args)} (long values are cut; the inbox shows them whole)`
  switch (kind) {
    case 'approval':
      return `${who} asks for approval of the call ${call}.${isIrreversible ? ' It cannot be undone.' : ''}`
    case 'in_doubt':
      return `A process died during the call ${call} of ${who}. Did it have its effect?`
    case 'input': {
      const questionText =
        typeof question === 'string' ? ` ${safeText(question, { maxChars: 2000 })}` : ''
      return `${who} asks for the result of ${call}.${questionText}`
    }
    case 'variables': {
      const names = (item.variables ?? []).map(({ name }) => name).join(', ')
      return `${who} needs values for ${safeText(names, { isLine: true })} before it can start ${call}.`
    }
  }
}

/** Arguments up to this length are shown whole. */
const MAX_SHOWN_CHARS = 8000
