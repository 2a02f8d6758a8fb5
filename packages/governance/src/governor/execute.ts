import type { EvidenceClaim, GovernedContext, ToolCore } from '../contract/governed.ts'
import { thrownText, reason, type Reason, refusal } from '../contract/reason.ts'
import { withTimeout } from './options.ts'
import { conflict, type GovernedRequest } from './request.ts'
import {
  type Envelope,
  type Hash,
  hashText,
  parseFrozen,
  type Streaming,
  UAICP_VERSION,
} from '../contract/envelope.ts'
import { timestampOf } from '../journal/journal.ts'
import { isClosed } from '../journal/reduce.ts'
import type { GovernedCallState, GovernorState } from '../journal/journal.ts'
import { argumentParserOf, canonicalJson, type JsonValue, parsedByMember } from '@skein/base'
import { type Evidence, EVIDENCE_TYPES } from '../contract/evidence.ts'
import type { RecordedEffect, EvidenceData, SettledData } from '../journal/events.ts'
import { namesOf, type CallNames } from './call-names.ts'
import type { AdmittedCall } from './candidate.ts'

/** Error codes with which a tool reports that it failed before it changed anything. */
const CLEAN_FAILURES: ReadonlySet<unknown> = new Set(['NO_EFFECT', 'TOOL_ARGUMENTS_INVALID'])

/**
 * Runs the tool of a call that was allowed, within its time limit. Returns its result, or the reasons why it
 * failed and whether it had its effect.
 */
export async function execute(
  request: GovernedRequest,
  call: AdmittedCall,
): Promise<GovernedOutcome> {
  const core = request.getTool(call.tool)
  // The run may have been stopped while the call's journal entry was written; then the tool is not started.
  if (request.stopped) return { type: 'error', reasons: [request.stopped], effect: 'absent' }
  try {
    return { type: 'result', value: await runTool(request, call, core) }
  } catch (error) {
    const why =
      error instanceof Stopped ? error.why : reason('TOOL_ERROR', call.tool, thrownText(error))
    if (call.risk === 'read_only') return { type: 'error', reasons: [why], effect: 'absent' }
    const isClean = CLEAN_FAILURES.has((error as { readonly code?: unknown } | null)?.code)
    const effect = isClean ? 'absent' : await probe(request, call, core)
    const reasons = effect === 'in_doubt' ? [why, reason('TOOL_IN_DOUBT', call.tool)] : [why]
    return { type: 'error', reasons, effect }
  }
}

class Stopped extends Error {
  readonly why: Reason

  constructor(why: Reason) {
    super(why.code)
    this.why = why
  }
}

/**
 * Calls the tool and waits for it. When the run is stopped or the tool's time is over, its signal is aborted
 * and it has `graceMs` more to end by itself, because a known outcome is better than an unknown effect.
 */
function runTool(
  request: GovernedRequest,
  call: AdmittedCall,
  { tool, governance: { timeoutMs } }: ToolCore,
): unknown {
  const { core, running, controller } = request
  // A call without a timeout uses the run's signal directly and needs no controller of its own.
  const own = timeoutMs === undefined ? undefined : new AbortController()
  const signal = own ? AbortSignal.any([controller.signal, own.signal]) : controller.signal
  // A tool's declared context type is that of its own framework; at run time the tool gets our context, which
  // has the members that UPP requires.
  const run = tool.run as (args: unknown, context: unknown) => unknown
  const parsedBy = parsedByMember(argumentParserOf(tool))
  const value = run(call.args, { ...toolContext(request, call, signal), ...parsedBy })
  if (!isThenable(value)) return value
  return new Promise((resolve, reject) => {
    let cancelGrace: (() => void) | undefined
    const stop = (why: Reason): void => {
      cancelGrace ??= core.timer(core.limits.graceMs, () => reject(new Stopped(why)))
    }
    const cancelTimer =
      timeoutMs === undefined
        ? undefined
        : core.timer(timeoutMs, () => {
            const why = reason('TOOL_TIMEOUT', call.tool, `${timeoutMs} ms`)
            own?.abort(why)
            stop(why)
          })
    const entry = running.get(call.call)
    if (entry) entry.stop = stop
    const cancel = (): void => {
      cancelTimer?.()
      cancelGrace?.()
    }
    value.then(
      (result) => {
        cancel()
        resolve(result)
      },
      (error: unknown) => {
        cancel()
        reject(error as Error)
      },
    )
  })
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}

/** Asks the tool's probe whether the effect happened. Without a clear answer that stays unknown (in doubt). */
export async function probe(
  request: GovernedRequest,
  call: AdmittedCall,
  { governance: { probe: look } }: ToolCore,
): Promise<'applied' | 'absent' | 'in_doubt'> {
  if (!look) return 'in_doubt'
  const { timer, limits } = request.core
  try {
    const found = await withTimeout(
      async (signal) => look(call.args, toolContext(request, call, signal)),
      limits.undoTimeoutMs,
      timer,
    )
    if (found === true || found === 'applied') return 'applied'
    return found === false || found === 'absent' ? 'absent' : 'in_doubt'
  } catch {
    // After a probe that throws or times out, it is still unknown whether the effect happened.
    return 'in_doubt'
  }
}

/** Builds the context that a tool's functions (`run`, `probe`, `rollback`) and functions that undo writes get. */
export function toolContext(
  request: GovernedRequest,
  call: AdmittedCall,
  signal: AbortSignal = request.controller.signal,
): GovernedContext {
  return {
    signal,
    idempotencyKey: call.idempotency_key,
    requestId: call.request_id,
    traceId: request.state.trace_id,
    callId: call.call,
    chunk: (text) => {
      if (call.risk !== 'read_only') {
        throw refusal(call.tool, [reason('POLICY_BLOCKED', call.tool, 'only reads may stream')])
      }
      emitChunk(request, text)
    },
  }
}

/**
 * Sends a piece of text to the listener before it is verified, marked as unverified (UAICP §4.2). A chunk
 * that is not in the log yet is written to the log first.
 */
export function emitChunk(request: GovernedRequest, text: string): void {
  const { state } = request
  if (isClosed(state) || state.state === 'fail_safe' || request.broken) {
    throw conflict(request, 'it is over and takes no more chunks')
  }
  const hash = hashText(JSON.stringify(text))
  const index = request.chunkIndex++
  const known = state.chunks[index]
  // A body that runs again repeats its chunks. A different text is a conflict, because the user has
  // already seen the first text.
  if (known && known.hash !== hash) {
    throw conflict(request, `chunk ${index} had another text before`)
  }
  const streaming: Streaming = {
    chunk_id: `${state.request_id}/${index}`,
    is_final: false,
    stream_index: index,
    'uaicp:verified': false,
  }
  if (index === state.chunks.length) {
    const options = { outcome: 'pending' as const, actor: request.agent, streaming }
    const written = request.submit({ type: 'chunk', data: { hash } }, options)
    // The error is not handled here: a failed write marks the request as broken, so the next operation
    // throws.
    if (typeof written !== 'number') request.track(written).catch(() => undefined)
  }
  send(request, { ...streaming, 'uaicp:text': text })
}

/** Counts the chunks of earlier attempts. They are void, because those attempts failed. */
export function countVoid({ chunks, attempt }: GovernorState): number {
  return chunks.filter((chunk) => chunk.attempt !== attempt).length
}

/**
 * Returns the `streaming` member of the last envelope; undefined when there were no chunks. It confirms
 * the chunks, except for the first `uaicp:retracted` ones: after a repair those of earlier attempts, after
 * a failure all.
 */
export function finalStreaming(
  { state }: GovernedRequest,
  isDelivered: boolean,
): Streaming | undefined {
  const index = state.chunks.length
  if (index === 0) return undefined
  const retracted = isDelivered ? countVoid(state) : index
  return {
    chunk_id: `${state.request_id}/${index}`,
    is_final: true,
    stream_index: index,
    'uaicp:verified': isDelivered,
    ...(retracted > 0 && { 'uaicp:retracted': retracted }),
  }
}

/** Sends an envelope with this chunk to the listener `onChunk`. */
export function send(request: GovernedRequest, streaming: Streaming): void {
  const { state, core } = request
  const phase = state.state
  const envelope: Envelope = {
    uaicp_version: UAICP_VERSION,
    request_id: state.request_id,
    trace_id: state.trace_id,
    ...(state.parent_trace_id !== undefined && { parent_trace_id: state.parent_trace_id }),
    state: phase,
    timestamp: timestampOf(core.clock.now()),
    identity: state.identity,
    outcome: phase === 'deliver' ? 'success' : phase === 'fail_safe' ? 'uncertain' : 'pending',
    streaming,
  }
  try {
    request.listeners.onChunk?.(envelope)
  } catch {
    // An error in the listener is ignored, because it must not affect the run.
  }
}

/** How an admitted call ended. */
export type GovernedOutcome =
  | { readonly type: 'result'; readonly value: unknown }
  /** `effect` says whether a write happened: `applied`, `absent`, or `in_doubt` when neither is certain. */
  | {
      readonly type: 'error'
      readonly reasons: readonly Reason[]
      readonly effect: 'applied' | 'absent' | 'in_doubt'
    }

/** The recorded outcome of a call: its result and the evidence, or why it failed. */
export type Settlement =
  | { readonly type: 'done'; readonly result: JsonValue; readonly evidence: Evidence }
  | {
      readonly type: 'failed'
      readonly reasons: readonly Reason[]
      readonly effect: RecordedEffect
    }

/** Records the end of a call that was allowed. Only here a result becomes evidence (proof for an answer). */
export async function settle(
  request: GovernedRequest,
  admitted: AdmittedCall,
  outcome: GovernedOutcome,
): Promise<Settlement> {
  const { state } = request
  const { call, tool, risk } = admitted
  if (state.state !== 'execute') {
    throw conflict(request, `call ${call} ended after the run had gone on to ${state.state}`)
  }
  const minted = outcome.type === 'error' ? outcome : mint(request, admitted, outcome.value)
  if ('reasons' in minted) {
    const { reasons } = minted
    const effect = risk === 'read_only' ? 'none' : minted.effect
    request.running.delete(call)
    await submitSettled(request, admitted, { effect, reasons })
    return { type: 'failed', reasons, effect }
  }
  const { payload, result, claim } = minted
  // Awaited only if the store returns a promise, so that a synchronous store costs no turn of the event loop.
  const stored = request.put(payload.hash, payload.text)
  if (stored) await stored
  if (result !== payload) await request.put(result.hash, result.text)
  const data: EvidenceData = {
    id: `${state.request_id}#${state.seq}`,
    type: claim.type,
    hash: payload.hash,
    result_hash: result === payload ? undefined : result.hash,
    subtype: claim.subtype,
  }
  const effect = risk === 'read_only' ? 'none' : 'applied'
  const written = submitSettled(request, admitted, { effect, evidence: data })
  // The evidence gets the time of its journal entry, so that it is the same object when it is read back
  // later.
  const at = state.calls.get(call)?.evidence?.at ?? 0
  const evidence = toEvidence(request, tool, { ...data, at }, payload.value)
  request.evidence.set(call, evidence)
  request.running.delete(call)
  if (typeof written !== 'number') await written
  return { type: 'done', result: result.value, evidence }
}

/**
 * Writes the entry that ends a call. `settled_by` is set when the outcome was only found out later: by a
 * probe, by a person, or because an idempotent tool may simply run again.
 */
export function submitSettled(
  request: GovernedRequest,
  names: CallNames,
  rest: Pick<SettledData, 'effect' | 'evidence' | 'reasons' | 'settled_by'>,
): number | Promise<number> {
  const outcome = rest.evidence ? 'success' : rest.effect === 'in_doubt' ? 'uncertain' : 'failure'
  const actor = rest.settled_by ? request.system : request.agent
  const data = { ...namesOf(names), ...rest }
  return request.submit({ type: 'call_settled', data }, { outcome, actor })
}

/** A value with its canonical text and hash. */
interface Text {
  readonly text: string
  readonly hash: Hash
  readonly value: JsonValue
}

function toText(value: unknown): Text {
  const text = canonicalJson(value)
  return { text, hash: hashText(text), value: parseFrozen(text) }
}

type Minted =
  | { readonly claim: EvidenceClaim; readonly result: Text; readonly payload: Text }
  | { readonly reasons: readonly Reason[]; readonly effect: 'applied' }

/** The evidence of a tool that declares none. Its payload is the tool's result; the `null` here is not used. */
const TOOL_RESULT: EvidenceClaim = { type: 'tool_result', payload: null }

/**
 * Creates the evidence from a tool's result, as the tool declares it, or returns the reasons why the
 * result cannot be evidence.
 */
function mint(request: GovernedRequest, { tool, args }: AdmittedCall, value: unknown): Minted {
  let problem: string
  try {
    const result = toText(value === undefined ? null : value)
    const claim = request.findTool(tool)?.governance.evidence?.(result.value, args)
    if (!claim) return { claim: TOOL_RESULT, result, payload: result }
    const { type, subtype } = claim
    if (!EVIDENCE_TYPES.includes(type)) problem = `"${type}" is not a type of evidence`
    // Only an approval whose tokens were accepted becomes evidence of this type, so no tool can claim it.
    else if (type === 'approval_token') problem = 'a tool cannot mint approvals'
    else if (type === 'custom' && !/^[^:\s]+:[^\s]+$/.test(subtype ?? ''))
      problem = 'custom needs a subtype'
    else return { claim, result, payload: toText(claim.payload) }
  } catch (error) {
    problem = thrownText(error)
  }
  return { reasons: [reason('EVIDENCE_INVALID', tool, problem)], effect: 'applied' }
}

/** Returns the evidence of a completed call, from the cache or rebuilt from its record and its payload. */
export async function evidenceOf(
  request: GovernedRequest,
  call: GovernedCallState,
): Promise<Evidence> {
  const known = request.evidence.get(call.call)
  if (known) return known
  if (!call.evidence) throw conflict(request, `call ${call.call} left no evidence`)
  const payload = await request.fetch(call.evidence.hash)
  const evidence = toEvidence(request, call.tool, call.evidence, payload)
  request.evidence.set(call.call, evidence)
  return evidence
}

function toEvidence(
  { state }: Pick<GovernedRequest, 'state'>,
  tool: string,
  data: EvidenceData & { readonly at: number },
  payload: JsonValue,
  actor = `tool:${tool}`,
): Evidence {
  return Object.freeze({
    evidence_id: data.id,
    evidence_type: data.type,
    source: tool,
    collected_at: timestampOf(data.at),
    hash: data.hash,
    payload,
    actor,
    request_id: state.request_id,
    trace_id: state.trace_id,
    // Absent members are left out rather than set to undefined, because validators check which members
    // exist.
    ...(state.parent_trace_id !== undefined && { parent_trace_id: state.parent_trace_id }),
    ...(data.subtype !== undefined && { 'uaicp:subtype': data.subtype }),
  })
}

/**
 * Returns the accepted approvals of calls that succeeded, as evidence. Their content comes from the log, not
 * from the payload store.
 */
export function approvalEvidence({ state }: GovernedRequest): Evidence[] {
  const minted: Evidence[] = []
  for (const { answer, tool, digest, call } of state.reviews.values()) {
    if (answer?.answer !== 'approved' || state.calls.get(call)?.status !== 'done') continue
    const { approvers = [], tokens = [], seq, at } = answer
    const { hash, value } = toText({ digest, approvers, tokens })
    const id = `${state.request_id}#${seq}`
    const [first] = approvers
    const actor = first && `${first.type}:${first.id}`
    minted.push(toEvidence({ state }, tool, { id, type: 'approval_token', hash, at }, value, actor))
  }
  return minted
}
