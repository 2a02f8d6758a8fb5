import type { JsonValue } from '@skein/base'
import { contextOf, coreOf, probe } from './execute.ts'
import { type CallState, effectKey } from '../journal/state.ts'
import type { EffectReference, UndoData, UndoStatus } from '../journal/events.ts'
import { messageOf } from '../contract/reason.ts'
import type { AdmittedCall, GovernedRequest } from './request.ts'
import type { Undo } from '../contract/run.ts'
import { withTimeout } from './options.ts'

/** A write to be inverted, and the request that made it: this one or a child that delivered. */
interface Target {
  readonly reference: EffectReference
  readonly owner: GovernedRequest
  readonly call: CallState
}

/** Finds the request that made a write. */
export type FindOwner = (requestId: string) => Promise<GovernedRequest | undefined>

/**
 * Inverts the writes of a request in reverse order of completion. A failure is recorded and the rest
 * still attempted; no signal stops it. Steps already in the journal are not repeated.
 */
export async function undoEffects(request: GovernedRequest, findOwner: FindOwner): Promise<Undo[]> {
  const done: Undo[] = []
  for (const reference of effectsOf(request)) {
    const owner = await findOwner(reference.request_id)
    const call = owner?.state.calls.get(reference.call)
    if (!owner || !call || call.effect === 'absent') continue
    const target = { reference, owner, call }
    const known = request.state.undo.get(effectKey(reference))?.settled
    const settled = known ?? (await undoOne(request, target))
    done.push(toUndo(reference, call, settled))
  }
  return done
}

/** Latest first, each once. Calls that were running when the process died come before all others. */
export function effectsOf({ state }: GovernedRequest): EffectReference[] {
  const open = [...state.calls.values()]
    .filter(({ status }) => status === 'started')
    .map(({ call }) => ({ request_id: state.request_id, call }))
  const latestFirst = [...state.effects, ...open].reverse()
  return [...new Map(latestFirst.map((one) => [effectKey(one), one])).values()]
}

async function undoOne(request: GovernedRequest, target: Target): Promise<UndoData> {
  const { reference, call } = target
  const { rollback } = call
  if (!rollback) return record(request, reference, { status: 'skipped', tries: 0 })
  if (rollback.type === 'manual') return record(request, reference, { status: 'manual', tries: 0 })
  if (request.state.undo.has(effectKey(reference))) {
    const end = await findInverted(target)
    if (end) return record(request, reference, end)
  } else {
    await request.submit(
      { type: 'undo_started', data: reference },
      { outcome: 'pending', rollback, durable: true },
    )
  }
  return record(request, reference, await invert(request, target))
}

/** Started before a crash: did the inverse get through? Undefined: it may run (again). */
async function findInverted(target: Target): Promise<UndoEnd | undefined> {
  const found = await probeCall(target.owner, target.call)
  if (found === 'absent') return { status: 'done', tries: 0 }
  if (found === 'applied' || isRepeatable(target)) return undefined
  return { status: 'unknown', tries: 0, error: 'it may have run before a crash' }
}

function isRepeatable({ owner, call: { rollback } }: Target): boolean {
  if (rollback?.type !== 'tool_call') return false
  return coreOf(owner, rollback.target).governance.idempotent === true
}

interface UndoEnd {
  readonly status: UndoStatus
  readonly tries: number
  readonly error?: string
}

async function record(
  request: GovernedRequest,
  { request_id, call }: EffectReference,
  end: UndoEnd,
): Promise<UndoData> {
  const data = { request_id, call, ...end }
  const outcome =
    end.status === 'done' ? 'success' : end.status === 'failed' ? 'failure' : 'uncertain'
  await request.submit({ type: 'undo_settled', data }, { outcome })
  return data
}

/** Tries the inverse a bounded number of times. */
async function invert(request: GovernedRequest, target: Target): Promise<UndoEnd> {
  const { undoTries } = request.core.limits
  for (let tries = 1; ; tries++) {
    try {
      await runInverse(target)
      // The inverse of an effect in doubt has run, but nobody knows what it inverted.
      const isInDoubt =
        target.call.effect === 'in_doubt' &&
        (await probeCall(target.owner, target.call)) !== 'absent'
      return { status: isInDoubt ? 'unknown' : 'done', tries }
    } catch (error) {
      if (tries >= undoTries) return { status: 'failed', tries, error: messageOf(error) }
    }
  }
}

async function runInverse({ owner, call }: Target): Promise<unknown> {
  const { rollback } = call
  if (!rollback) return undefined
  const { timer, limits, undoers } = owner.core
  const admitted = { ...toAdmitted(owner, call, null), tool: rollback.target }
  const key = `${admitted.idempotency_key}:undo`
  const timeoutMs = limits.undoTimeoutMs
  return withTimeout(
    async (signal) => {
      const context = { ...contextOf(owner, admitted, signal), idempotencyKey: key }
      if (rollback.type !== 'tool_call') return undoers[rollback.type]?.(rollback, context)
      const run = coreOf(owner, rollback.target).tool.run as (args: unknown, c: unknown) => unknown
      return run(rollback.payload, context)
    },
    timeoutMs,
    timer,
  )
}

/** Looks at the world for a recorded call. What stands in the way leaves it in doubt. */
export async function probeCall(
  owner: GovernedRequest,
  call: CallState,
): Promise<'applied' | 'absent' | 'in_doubt'> {
  try {
    const args = await owner.fetch(call.args_hash)
    return await probe(owner, toAdmitted(owner, call, args), coreOf(owner, call.tool))
  } catch {
    // Its arguments were erased, or its task has changed: nobody can tell.
    return 'in_doubt'
  }
}

/** A recorded call as its tool would see it again. */
export function toAdmitted(
  { state }: GovernedRequest,
  { call, tool, risk, args_hash, attempt }: CallState,
  args: JsonValue,
): AdmittedCall {
  const idempotency_key = `${state.request_id}/${call}@${attempt}`
  return { request_id: state.request_id, call, tool, risk, args, args_hash, idempotency_key }
}

/** What a result says of one write. */
export function toUndo(
  { request_id, call }: EffectReference,
  known: CallState | undefined,
  { status, error }: Pick<UndoData, 'status' | 'error'>,
): Undo {
  return {
    request_id,
    call,
    tool: known?.tool ?? 'unknown',
    ...(known?.rollback && { action: known.rollback }),
    status,
    ...(error !== undefined && { error }),
  }
}
