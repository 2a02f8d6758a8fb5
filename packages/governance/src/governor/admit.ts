import type { JsonValue } from '@skein/base'
import type { ApprovalAnswer, ApprovalRequest } from '../contract/approval.ts'
import { hashText, type Risk, type RollbackAction } from '../contract/envelope.ts'
import type { Evidence } from '../contract/evidence.ts'
import type { ShadowData } from '../journal/events.ts'
import { reason, type Reason, refusal, toLogText } from '../contract/reason.ts'
import { judge, toAction } from './decide.ts'
import type { CallState } from '../journal/state.ts'
import { type AdmittedCall, conflict, type GovernedRequest } from './request.ts'
import { review } from './review.ts'
import {
  type Candidate,
  declareRollback,
  findLimitReasons,
  snapshot,
  toAdmitted,
} from './candidate.ts'
import { evidenceOf } from './settle.ts'

/** A call that asks to be made. `id` is unique in the request and the same on replay. */
export interface CallRequest {
  readonly id: string
  readonly tool: string
  readonly args: JsonValue
}

/** What the pre-action gate says. */
export type Admission =
  | { readonly type: 'allow'; readonly call: AdmittedCall }
  /** Made before: this is what came of it. */
  | { readonly type: 'replay'; readonly result: JsonValue; readonly evidence: Evidence }
  | { readonly type: 'deny'; readonly reasons: readonly Reason[] }
  /** A person has to say. `rejected`: why the tokens given were of no use. */
  | { readonly type: 'review'; readonly request: ApprovalRequest; readonly rejected?: Reason }

/** `isFinal`: nobody will be asked again, so tokens that are of no use refuse the call. */
type GivenAnswer = ApprovalAnswer & { readonly isFinal?: boolean }

/**
 * The pre-action gate: snapshot, tier, limits, rollback, policy, approval, and for writes the intent
 * on disk. Everything that is not clearly allowed is denied. An admitted call has to be settled.
 */
export async function admit(
  request: GovernedRequest,
  call: CallRequest,
  answer?: GivenAnswer,
): Promise<Admission> {
  if (request.broken) throw request.broken
  if (toLogText(call.id) !== call.id) throw conflict(request, 'its call has an unusable id')
  const { state } = request
  // Before anything is waited for: the caller may change its object as soon as it can.
  const made = snapshot(request, call)
  if (state.state === 'plan') await request.move('execute')
  if (state.state !== 'execute') throw conflict(request, `it is in ${state.state}`)
  const known = state.calls.get(call.id)
  if (!('core' in made)) {
    if (known) throw conflict(request, `call ${call.id} was ${known.tool} before`)
    return refuse(request, made.call, made.reasons)
  }
  if (known && known.status !== 'retry' && known.status !== 'undone') {
    return replay(request, made, known)
  }
  if (request.running.has(made.id)) throw conflict(request, `call ${made.id} is running`)
  const barred = findLimitReasons(request, made)
  if (barred.length > 0) return refuse(request, made, barred)
  return made.risk === 'read_only' ? allow(request, made) : admitWrite(request, made, answer)
}

/** Writes go on to rollback, policy and approval. They hold their id while they do. */
async function admitWrite(
  request: GovernedRequest,
  made: Candidate,
  answer: GivenAnswer | undefined,
): Promise<Admission> {
  const hold = allow(request, made)
  let admission: Admission | undefined
  try {
    admission = await judgeWrite(request, made, answer)
  } finally {
    if (admission?.type !== 'allow') request.running.delete(made.id)
  }
  return admission.type === 'allow' ? hold : admission
}

async function judgeWrite(
  request: GovernedRequest,
  made: Candidate,
  answer: GivenAnswer | undefined,
): Promise<Admission> {
  const rollback = await declareRollback(request, made)
  if (Array.isArray(rollback)) return refuse(request, made, rollback)
  const { id: call, tool, risk, args, args_hash } = made
  const action = toAction(request, { call, tool, risk, args, args_hash, rollback })
  const { decision, shadow } = await judge(request, action)
  if (decision.effect === 'deny') {
    const reasons = decision.reasons ?? [reason('POLICY_BLOCKED', made.tool)]
    return refuse(request, made, reasons, shadow)
  }
  if (decision.effect === 'allow' && made.risk !== 'write_high_risk') {
    return start(request, made, { rollback, shadow })
  }
  const reviewed = await review(request, { made, action, decision, answer })
  switch (reviewed.type) {
    case 'approved':
      return start(request, made, { rollback, shadow, ...reviewed.approval })
    case 'denied':
      return refuse(request, made, [reviewed.reason], shadow)
    case 'waiting':
      if (answer?.isFinal && reviewed.rejection) {
        return refuse(request, made, [reviewed.rejection.rejected], shadow)
      }
      return { type: 'review', request: reviewed.request, ...reviewed.rejection }
  }
}

interface StartOptions {
  readonly rollback: RollbackAction | undefined
  readonly shadow: readonly ShadowData[]
  readonly review?: string
  readonly digest?: AdmittedCall['args_hash']
}

/** Intent: arguments and entry are durable before anything happens. */
async function start(
  request: GovernedRequest,
  made: Candidate,
  { rollback, shadow, review, digest }: StartOptions,
): Promise<Admission> {
  await request.put(made.args_hash, made.text, { durable: true })
  // While policy and people thought, the run may have ended; nothing runs after that decision.
  if (request.stopped) return refuse(request, made, [request.stopped])
  if (request.state.state !== 'execute') throw conflict(request, `it is in ${request.state.state}`)
  const data = {
    ...namesOf(made),
    policy_hash: request.policyHash,
    review,
    digest,
    shadow: shadow.length > 0 ? shadow : undefined,
  }
  await request.submit(
    { type: 'call_started', data },
    {
      outcome: 'pending',
      actor: request.agent,
      rollback,
      durable: true,
      seal: made.risk === 'write_high_risk',
    },
  )
  return { type: 'allow', call: toAdmitted(request, made) }
}

function allow(request: GovernedRequest, made: Candidate): Admission {
  const call = toAdmitted(request, made)
  request.running.set(made.id, { call })
  return { type: 'allow', call }
}

async function refuse(
  request: GovernedRequest,
  made: Pick<Candidate, 'id' | 'tool' | 'risk' | 'args_hash'>,
  reasons: readonly Reason[],
  shadow: readonly ShadowData[] = [],
): Promise<Admission> {
  const data = { ...namesOf(made), reasons, shadow: shadow.length > 0 ? shadow : undefined }
  await request.submit({ type: 'call_refused', data }, { outcome: 'failure', actor: request.agent })
  return { type: 'deny', reasons }
}

function namesOf({
  id,
  tool,
  risk,
  args_hash,
}: Pick<Candidate, 'id' | 'tool' | 'risk' | 'args_hash'>): {
  call: string
  tool: string
  risk: Risk
  args_hash: AdmittedCall['args_hash']
} {
  return { call: id, tool, risk, args_hash }
}

/** A completed call is never run again: its record answers, if it is the same call. */
async function replay(
  request: GovernedRequest,
  made: Candidate,
  known: CallState,
): Promise<Admission> {
  if (known.tool !== made.tool || known.args_hash !== made.args_hash) {
    throw conflict(request, `call ${made.id} was ${known.tool} with other arguments before`)
  }
  if (known.status === 'started') throw conflict(request, `call ${made.id} is running or in doubt`)
  if (known.status !== 'done') return { type: 'deny', reasons: known.reasons }
  const evidence = await evidenceOf(request, known)
  const { result_hash } = known.evidence ?? {}
  const result = result_hash ? await request.fetch(result_hash) : (evidence.payload ?? null)
  return { type: 'replay', result, evidence }
}

/**
 * A tool that runs at the model's vendor cannot be wrapped: nothing here sees its arguments or its
 * effect. It is refused unless a policy allows it by name; even then it is logged as ungoverned and
 * never yields evidence.
 */
export async function admitNative(request: GovernedRequest, tool: string): Promise<void> {
  const { state } = request
  if (state.state === 'plan') await request.move('execute')
  if (state.state !== 'execute') throw conflict(request, `it is in ${state.state}`)
  const action = toAction(request, {
    call: `native:${tool}`,
    tool,
    risk: 'write_high_risk',
    args: null,
    args_hash: hashText('null'),
    native: true,
  })
  const { decision } = await judge(request, action)
  const allowed = decision.effect === 'allow'
  const detail = 'it runs at the model’s vendor; a policy that looks at action.native can allow it'
  const reasons = [reason('TOOL_UNGOVERNED', tool, detail), ...(decision.reasons ?? [])]
  const data = { tool: toLogText(tool), allowed, reasons: allowed ? undefined : reasons }
  const outcome = allowed ? 'uncertain' : 'failure'
  await request.submit({ type: 'native_tool', data }, { outcome, actor: request.agent })
  if (!allowed) throw refusal(tool, reasons)
}
