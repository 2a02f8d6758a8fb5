import { type ArgumentParser, argumentParserOf, type JsonValue } from '@skein/base'
import type { ApprovalAnswer, ApprovalRequest } from '../contract/approval.ts'
import type { Hash, RollbackAction } from '../contract/envelope.ts'
import type { Evidence } from '../contract/evidence.ts'
import { GovernanceError, reason, type Reason, thrownText, toLogText } from '../contract/reason.ts'
import type { ShadowData } from '../journal/events.ts'
import { type AdmittedCall, toAdmitted } from './admitted-call.ts'
import {
  type CallRequest,
  type Candidate,
  declareRollback,
  findLimitReasons,
  snapshot,
} from './candidate.ts'
import { type CallNames, namesOf } from './call-names.ts'
import type { GovernedCallState } from '../journal/governor-state.ts'
import { judge, toAction } from './judge.ts'
import { putArguments, review } from './review.ts'
import { conflict, type GovernedRequest } from './request.ts'
import { evidenceOf } from './evidence.ts'

/** The result of `admit`: the decision about one call. */
export type Admission =
  | { readonly type: 'allow'; readonly call: AdmittedCall }
  /** The call was made before; this is its recorded result. */
  | { readonly type: 'replay'; readonly result: JsonValue; readonly evidence: Evidence }
  /** `text` is the whole text of a reason that the log holds only the beginning of. */
  | { readonly type: 'deny'; readonly reasons: readonly Reason[]; readonly text?: string }
  /** A person has to approve. `rejected` says why the tokens that were given are not accepted. */
  | { readonly type: 'review'; readonly request: ApprovalRequest; readonly rejected?: Reason }

/**
 * An answer to an approval request. With `isFinal` no one will be asked again, so the call is denied if
 * its tokens are not accepted.
 */
export type GivenAnswer = ApprovalAnswer & { readonly isFinal?: boolean }

/**
 * Decides whether a call may run. It has the tool parse the arguments, copies them, and checks risk and limits; for writes it also
 * checks rollback, policy and approval, and then stores on disk that the call is about to run (its intent). A
 * call that is not clearly allowed is denied. For a call that was completed before, it returns the recorded
 * result. The caller has to record the outcome of every allowed call with `settle`.
 */
export async function admit(
  request: GovernedRequest,
  call: CallRequest,
  answer?: GivenAnswer,
): Promise<Admission> {
  if (request.broken) throw request.broken
  if (toLogText(call.id) !== call.id) throw conflict(request, 'its call has an unusable id')
  const { state, running } = request
  // The snapshot must be taken before the first `await`, because the caller may change the arguments
  // while this function waits.
  const first = snapshot(request, call)
  if (state.state !== 'execute') await request.execute()
  const previous = state.calls.get(call.id)
  const isOver = previous && previous.status !== 'retry' && previous.status !== 'undone'
  const parser = 'core' in first && call.sent === undefined && argumentParserOf(first.core.tool)
  // A call that was made is never parsed again: what the model sent shows that it is the same call.
  const isSent =
    isOver && parser && previous.sent_hash === first.args_hash && previous.tool === first.tool
  if (isSent) return recordedAdmission(request, previous)
  const candidate =
    parser && !isOver ? await parseArguments(request, { call, first, parser }) : first
  if ('text' in candidate && !('core' in candidate)) return candidate
  const { tool, args_hash } = 'core' in candidate ? candidate : candidate.names
  const isSame = previous?.tool === tool && previous.args_hash === args_hash
  if (!('core' in candidate)) {
    // A body that runs again repeats its refused calls.
    if (previous?.status === 'refused' && isSame) return { type: 'deny', reasons: previous.reasons }
    if (previous) throw conflict(request, `call ${call.id} was ${previous.tool} before`)
    return refuseCall(request, candidate.names, candidate.reasons)
  }
  if (isOver) {
    // A call that was made is never made again. If tool and arguments are the same, the recorded outcome
    // is returned; otherwise it is a conflict.
    if (!isSame) {
      throw conflict(request, `call ${call.id} was ${previous.tool} with other arguments before`)
    }
    return recordedAdmission(request, previous)
  }
  if (running.has(call.id)) throw conflict(request, `call ${call.id} is running`)
  const limitReasons = findLimitReasons(request, candidate)
  if (limitReasons.length > 0) return refuseCall(request, candidate, limitReasons)
  const admittedCall = toAdmitted(request, { ...candidate, attempt: state.attempt }, candidate.args)
  running.set(call.id, { call: admittedCall })
  if (candidate.risk === 'read_only') return { type: 'allow', call: admittedCall }
  // A write stays in `running` while it is judged, so that no other call can use its id.
  const refusalOfWrite = await judgeWrite(request, candidate, answer).catch((error: unknown) => {
    running.delete(call.id)
    throw error
  })
  if (refusalOfWrite) running.delete(call.id)
  return refusalOfWrite ?? { type: 'allow', call: admittedCall }
}

/** Returns the recorded outcome of a call that was made before. */
async function recordedAdmission(
  request: GovernedRequest,
  known: GovernedCallState,
): Promise<Admission> {
  if (known.status === 'started')
    throw conflict(request, `call ${known.call} is running or in doubt`)
  if (known.status !== 'done') return { type: 'deny', reasons: known.reasons }
  const evidence = await evidenceOf(request, known)
  const { result_hash } = known.evidence ?? {}
  const result = result_hash ? await request.fetch(result_hash) : (evidence.payload ?? null)
  return { type: 'replay', result, evidence }
}

interface Unparsed {
  readonly call: CallRequest
  /** The snapshot of what the model sent. */
  readonly first: Candidate
  readonly parser: ArgumentParser
}

/**
 * Returns the snapshot of the parsed arguments: of those that the journal has from an approval request or an earlier
 * try, if the definition of the tool is still the same, and otherwise of those that the tool makes now. Returns the
 * denial of a call whose arguments do not fit.
 */
async function parseArguments(
  request: GovernedRequest,
  { call, first, parser }: Unparsed,
): Promise<
  ReturnType<typeof snapshot> | (Admission & { readonly type: 'deny'; readonly text: string })
> {
  const { schema } = parser
  const { state } = request
  const previous = state.calls.get(call.id) ?? state.reviews.get(call.id)
  const isSame = previous?.schema === schema && previous.sent_hash === first.args_hash
  try {
    const storedArgs = isSame
      ? await request.fetch(previous.args_hash).catch(() => undefined) // it may have been erased
      : undefined
    const args = storedArgs ?? (await parser.parse(first.args))
    return snapshot(request, { ...call, args, sent: first.args, schema })
  } catch (error) {
    if (error instanceof GovernanceError) throw error
    const text = thrownText(error)
    const denial = await refuseCall(request, first, [reason('SCHEMA_INVALID', first.tool, text)])
    return { ...denial, text }
  }
}

/**
 * Returns what `admit` would answer to a call, without writing anything. The decision is made again when
 * the call is admitted.
 */
export async function previewCall(
  request: GovernedRequest,
  call: CallRequest,
): Promise<'allow' | 'deny' | 'review'> {
  const first = snapshot(request, call)
  const parser = 'core' in first && call.sent === undefined && argumentParserOf(first.core.tool)
  const parsedArgs = parser && (await parser.parse(first.args).catch(() => undefined))
  if (parser && !parsedArgs) return 'deny'
  const candidate = parsedArgs
    ? snapshot(request, { ...call, args: parsedArgs, sent: first.args })
    : first
  if (!('core' in candidate) || findLimitReasons(request, candidate).length > 0) return 'deny'
  if (candidate.risk === 'read_only') return 'allow'
  const rollback = await declareRollback(request, candidate)
  if (Array.isArray(rollback)) return 'deny'
  const { decision } = await judge(request, toAction(request, { ...candidate, rollback }))
  return decision.effect === 'allow' && candidate.risk === 'write_high_risk'
    ? 'review'
    : decision.effect
}

/**
 * Checks rollback, policy and approval of a write, then records that it is about to run (its intent). Returns
 * undefined when the write may run, otherwise the answer for the caller.
 */
async function judgeWrite(
  request: GovernedRequest,
  made: Candidate,
  answer: GivenAnswer | undefined,
): Promise<Admission | undefined> {
  const rollback = await declareRollback(request, made)
  if (Array.isArray(rollback)) return refuseCall(request, made, rollback)
  const action = toAction(request, { ...made, rollback })
  const { decision, shadow } = await judge(request, action)
  if (decision.effect === 'deny') {
    const reasons = decision.reasons ?? [reason('POLICY_BLOCKED', made.tool)]
    return refuseCall(request, made, reasons, shadow)
  }
  // A high-risk write always needs a person's approval, even when a policy allows it.
  if (decision.effect === 'allow' && made.risk !== 'write_high_risk') {
    return start(request, made, { rollback, shadow })
  }
  const outcome = await review(request, { made, action, decision, answer })
  switch (outcome.type) {
    case 'approved':
      return start(request, made, { rollback, shadow, ...outcome.approval })
    case 'denied':
      return refuseCall(request, made, [outcome.reason], shadow)
    case 'waiting': {
      const { request: asked, rejected } = outcome
      if (answer?.isFinal && rejected) return refuseCall(request, made, [rejected], shadow)
      return { type: 'review', request: asked, ...(rejected && { rejected }) }
    }
  }
}

interface StartOptions {
  readonly rollback: RollbackAction | undefined
  readonly shadow: readonly ShadowData[]
  readonly review?: string
  readonly digest?: Hash
}

/** Writes the intent of a call: its arguments and its journal entry are on disk before the tool runs. */
async function start(
  request: GovernedRequest,
  made: Candidate,
  { rollback, shadow, review: asked, digest }: StartOptions,
): Promise<Admission | undefined> {
  await putArguments(request, made)
  // The run may have been stopped while policies or people were asked; then the call must not start.
  if (request.stopped) return refuseCall(request, made, [request.stopped])
  if (request.state.state !== 'execute') throw conflict(request, `it is in ${request.state.state}`)
  const data = {
    ...namesOf(made),
    policy_hash: request.policyHash,
    review: asked,
    digest,
    shadow: shadow.length > 0 ? shadow : undefined,
  }
  const seal = made.risk === 'write_high_risk'
  await request.submit(
    { type: 'call_started', data },
    { outcome: 'pending', actor: request.agent, rollback, durable: true, seal },
  )
  return undefined
}

async function refuseCall(
  request: GovernedRequest,
  names: CallNames,
  reasons: readonly Reason[],
  shadow: readonly ShadowData[] = [],
): Promise<Admission & { readonly type: 'deny' }> {
  const data = { ...namesOf(names), reasons, shadow: shadow.length > 0 ? shadow : undefined }
  await request.submit({ type: 'call_refused', data }, { outcome: 'failure', actor: request.agent })
  return { type: 'deny', reasons }
}
