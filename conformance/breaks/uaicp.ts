import type { Breaks } from './break.ts'

/** How each row of UAICP can be violated. See `break.ts`. */
export const breaks: Breaks = {
  'UAICP-01': [
    {
      clause: 'delivered only with the required evidence',
      in: 'governance/findMissing',
      swap: ['if (fresh.length >= min) continue', 'continue'],
    },
    {
      clause: 'a failed run states its uncertainty',
      in: 'governance/toFailedSafe',
      swap: [`outcome: 'uncertain'`, `outcome: 'failure' as never`],
    },
  ],
  'UAICP-03': [
    {
      clause: 'the log does not depend on who is faster',
      in: 'governance/runVerifiers',
      swap: [
        'of verifiers.entries()) {',
        'of [...verifiers.entries()].toSorted(() => Math.random() - 0.5)) {',
      ],
    },
    {
      clause: 'time comes from the clock that is given',
      in: 'governance/GovernedRequest.submit',
      swap: ['at: this.core.clock.now()', 'at: Date.now()'],
    },
    {
      clause: 'a gap or an impossible entry is not gone on with',
      in: 'governance/checkOrder',
      swap: [
        'if (isPossible && item.seq === draft.seq && !draft.delivered && !draft.failed) return',
        'if (draft || isPossible) return',
      ],
    },
  ],
  'UAICP-04': [
    {
      clause: 'what a tool returns cannot be an approval',
      in: 'governance/mint',
      swap: [`else if (type === 'approval_token') problem = 'a tool cannot mint approvals'`, ''],
    },
  ],
  'UAICP-05': [
    {
      clause: 'every completed call leaves evidence',
      in: 'governance/settle',
      swap: [
        'submitSettled(request, admitted, { effect, evidence: data })',
        `submitSettled(request, admitted, { effect, evidence: risk === 'read_only' ? data : undefined })`,
      ],
    },
    {
      clause: 'that is valid',
      in: 'governance/toEvidence',
      swap: ['hash: data.hash,', 'hash: data.hash.slice(7) as Hash,'],
    },
  ],
  'UAICP-06': [
    {
      clause: 'prose is no report',
      in: 'governance/runVerifier',
      swap: [
        "if (issue) return failed('VERIFIER_ERROR', `${issue.path} ${issue.message}`)",
        `if (issue) return { report: toReport([{ check_id: 'x', result: 'pass' }]), reasons: [] }`,
      ],
    },
    {
      clause: 'one that throws has failed',
      in: 'governance/runVerifier',
      swap: [
        'return failed(code, thrownText(error))',
        `return { report: toReport([{ check_id: code, result: 'pass' }]), reasons: [] }`,
      ],
    },
  ],
  'UAICP-07': [
    {
      clause: 'verification comes before the gate',
      in: 'governance/deliver',
      swap: [
        'const verdicts = await runVerifiers(request, evidence, value)',
        'const verdicts = await runVerifiers(request, [], value)',
      ],
    },
    {
      clause: 'the log is in that order',
      in: 'governance/deliver',
      swap: [
        `await walkToVerify(request)
  if (text`,
        `if (request.state.state === 'plan') await request.move('execute')
  if (text`,
      ],
    },
  ],
  'UAICP-08': [
    {
      clause: 'the phases in their order',
      in: 'governance/walkToVerify',
      swap: [`await request.move('verify')`, ''],
    },
    {
      clause: 'a refusal at intake fails safe',
      in: 'governance/openRequest',
      swap: [`if (reasons.length === 0) await request.move('plan')`, `await request.move('plan')`],
    },
  ],
  'UAICP-09': [
    {
      clause: 'no delivery without evidence',
      in: 'governance/deliver',
      swap: [
        'const reasons = [...open, ...unreadable, ...needed, ...verdicts',
        'const reasons = [...open, ...unreadable, ...verdicts',
      ],
    },
    {
      clause: 'no delivery without verification',
      in: 'governance/deliver',
      swap: [', ...verdicts.flatMap((one) => one.reasons)]', ']'],
    },
    {
      clause: 'no delivery with open reasons',
      in: 'governance/deliver',
      swap: ['const reasons = [...open, ...unreadable', 'const reasons = [...unreadable'],
    },
  ],
  'UAICP-10': [
    {
      clause: 'straight to fail_safe',
      in: 'governance/repairOrFail',
      swap: [
        'if (repair && canChange && state.attempt <= repair.max) {',
        'if (canChange && state.attempt <= (repair?.max ?? 1)) {',
      ],
    },
  ],
  'UAICP-11': [
    {
      clause: 'bounded',
      in: 'governance/repairOrFail',
      swap: ['state.attempt <= repair.max', 'state.attempt <= repair.max + 1'],
    },
    {
      clause: 'counted in every entry',
      in: 'governance/GovernedRequest.submit',
      swap: ['attempt: state.attempt,', 'attempt: 1,'],
    },
    {
      clause: 'back to plan or execute, as declared',
      in: 'governance/repairOrFail',
      swap: [`repair.to ?? 'plan'`, `'plan'`],
    },
    {
      clause: 'the failed attempt is undone first',
      in: 'governance/repairOrFail',
      swap: ['repair.undoFirst === false ? [] : await undoEffects(request)', '[]'],
    },
  ],
  'UAICP-12': [
    {
      clause: 'nothing leads out of deliver',
      in: 'governance/TRANSITIONS',
      swap: ['deliver: [],', `deliver: ['plan'],`],
    },
    {
      clause: 'nothing leads out of fail_safe',
      in: 'governance/TRANSITIONS',
      swap: ['fail_safe: [],', `fail_safe: ['plan'],`],
    },
  ],
  'UAICP-13': [
    {
      clause: 'another process that was faster wins',
      in: 'governance/GovernedRequest.break',
      swap: [
        `const code = isConflict ? 'STATE_CONFLICT' : 'AUDIT_UNAVAILABLE'`,
        `const code = 'AUDIT_UNAVAILABLE'`,
      ],
    },
  ],
  'UAICP-14': [
    {
      clause: 'every chunk before the end is marked',
      in: 'governance/emitChunk',
      swap: [`'uaicp:verified': false`, `'uaicp:verified': true`],
    },
    {
      clause: 'the end confirms',
      in: 'governance/finalStreaming',
      swap: [`'uaicp:verified': isDelivered`, `'uaicp:verified': false`],
    },
    {
      clause: 'or retracts',
      in: 'governance/finalStreaming',
      swap: ['isDelivered ? countVoid(state) : index', '0'],
    },
    {
      clause: 'what a failed attempt streamed is never confirmed',
      in: 'governance/finalStreaming',
      swap: ['isDelivered ? countVoid(state) : index', 'isDelivered ? 0 : index'],
    },
    {
      clause: 'a tool that writes may not stream',
      in: 'governance/toolContext',
      swap: [`if (call.risk !== 'read_only') {`, `if (call.risk === 'write_high_risk') {`],
    },
  ],
  'UAICP-15': [
    {
      clause: 'a running call',
      in: 'governance/findOpenWork',
      swap: ['if (call !== undefined) return `call ${call} is running`', ''],
    },
    {
      clause: 'an open approval',
      in: 'governance/findOpenWork',
      swap: ['if (review) return `call ${review.call} waits for approval`', ''],
    },
    {
      clause: 'an open child',
      in: 'governance/findOpenWork',
      swap: ['if (!settled) return `child ${child} is running`', ''],
    },
    {
      clause: 'calls that the body did not await',
      in: 'governance/GovernedRequest.idle',
      swap: ['while (this.pending.size > 0)', 'while (this.pending.size > 99)'],
    },
  ],
  'UAICP-16': [
    {
      clause: 'indices count from 0 without a gap',
      in: 'governance/emitChunk',
      swap: ['request.chunkIndex++', '(request.chunkIndex += 2) - 2'],
    },
    {
      clause: 'a replay repeats them',
      in: 'governance/drive',
      swap: ['countVoid(request.state)', 'request.state.chunks.length'],
    },
    {
      clause: 'another text is a conflict',
      in: 'governance/emitChunk',
      swap: ['if (known && known.hash !== hash) {', 'if (known && known.hash === undefined) {'],
    },
    {
      clause: 'a consumer sees a gap',
      in: 'governance/checkChunks',
      swap: [
        `for (; next < stream_index; next++) faults.push({ type: 'gap', stream_index: next })`,
        '',
      ],
    },
    {
      clause: 'a consumer sees a duplicate',
      in: 'governance/checkChunks',
      swap: [
        `if (stream_index < next) faults.push({ type: 'duplicate', stream_index })`,
        'if (stream_index < next) continue',
      ],
    },
  ],
  'UAICP-17': [
    {
      clause: 'deadline',
      in: 'governance/limitsOf',
      swap: ['outer?.deadline ?? Infinity', 'Infinity'],
    },
    {
      clause: 'calls',
      in: 'governance/findLimitReasons',
      swap: ['at = at.parent) {', 'at = undefined) {'],
    },
    {
      clause: 'risk ceiling',
      in: 'governance/limitsOf',
      swap: ['outer && isAtLeast(ceiling, outer.ceiling) ? outer.ceiling : ceiling', 'ceiling'],
    },
    {
      clause: 'depth',
      in: 'governance/limitsOf',
      swap: ['Math.min(depth, outer.depth - 1)', 'depth'],
    },
    {
      clause: 'freedom',
      in: 'governance/findIdentityReasons',
      swap: ['strictness < CONTROL_CLASSES.indexOf(outer.control_class)', 'strictness < -1'],
    },
    {
      clause: 'policies of the parent',
      in: 'governance/policiesOf',
      swap: ['parent?.policies ?? core.policies', 'core.policies'],
    },
    {
      clause: 'a child goes on inside its parent only',
      in: 'governance/assertOutermost',
      swap: ['parent === undefined || isClosed(request.state)', 'true'],
    },
    {
      clause: 'also for tools of a vendor',
      in: 'governance/admitNative',
      swap: ['= findLimitReasons(request, act)', ': Reason[] = []'],
    },
  ],
  'UAICP-18': [
    {
      clause: 'in evidence',
      in: 'governance/toEvidence',
      swap: [
        '...(state.parent_trace_id !== undefined && { parent_trace_id: state.parent_trace_id }),',
        '',
      ],
    },
    {
      clause: 'in envelopes',
      in: 'governance/draftRequest',
      swap: ['parent_trace_id: parent?.state.trace_id,', 'parent_trace_id: undefined,'],
    },
    {
      clause: 'failures bubble',
      in: 'governance/findOpenReasons',
      swap: [`reasons.push(reason('CHILD_FAIL_SAFE', child), ...(settled?.reasons ?? []))`, ''],
    },
    {
      clause: 'with their reasons',
      in: 'governance/settleChild',
      swap: ['reasons: failed?.reasons,', ''],
    },
  ],
  'UAICP-19': [
    {
      clause: 'removed',
      in: 'governance/findMissing',
      swap: ['fresh.length >= min', 'fresh.length >= 0'],
    },
    {
      clause: 'aged',
      in: 'governance/findMissing',
      swap: ['Math.abs(core.clock.now() - Date.parse(collected_at)) <= maxAgeMs', 'true'],
    },
    {
      clause: 'relabelled',
      in: 'governance/findMissing',
      swap: ['(source === undefined || one.source === source) &&', ''],
    },
    {
      clause: 'what the need asks of it',
      in: 'governance/holds',
      swap: ['where === undefined || where(evidence) === true', 'true'],
    },
  ],
  'UAICP-20': [
    {
      clause: 'crashed',
      in: 'governance/runVerifier',
      swap: [
        `error instanceof TimeoutError ? 'VERIFIER_TIMEOUT' : 'VERIFIER_ERROR'`,
        `'VERIFIER_TIMEOUT'`,
      ],
    },
    {
      clause: 'hung',
      in: 'governance/runVerifier',
      swap: [
        `verifier.timeoutMs,
      core.timer,`,
        `verifier.timeoutMs * 1e6,
      core.timer,`,
      ],
    },
    {
      clause: 'partial',
      in: 'governance/runVerifier',
      swap: [
        'if (!gap) return { report, reasons: [] }',
        `if (!gap || report.status === 'partial') return { report, reasons: [] }`,
      ],
    },
    {
      clause: 'looked at the evidence',
      in: 'governance/findInconsistency',
      swap: [`if (own.evidence_ids.some((id) => !seen.has(id))) return 'it left out evidence'`, ''],
    },
    {
      clause: 'of this request',
      in: 'governance/findInconsistency',
      swap: [`if (report.request_id !== own.request_id) return 'it speaks of another request'`, ''],
    },
    {
      clause: 'consistent',
      in: 'governance/findInconsistency',
      swap: ['return report.status === own.status', `return report.status !== 'error'`],
    },
    {
      clause: 'mechanical unless accepted',
      in: 'governance/runVerifier',
      swap: ['verifier.mechanical === false && !task.acceptModelGraded', 'false'],
    },
  ],
  'UAICP-21': [
    {
      clause: 'no tool without a tier',
      in: 'governance/governed',
      swap: [
        "if (!RISKS.includes(risk)) problems.push(`its risk is not one of ${RISKS.join(', ')}`)",
        '',
      ],
    },
    {
      clause: 'raise only raises',
      in: 'governance/riskOf',
      swap: ['isAtLeast(raised, risk) ? raised : risk', 'raised'],
    },
    {
      clause: 'not outside a governed run',
      in: 'governance/governed',
      swap: [
        `run: async () => {
      throw`,
        `run: async (args: Args) => {
      if (args) return tool.run(args, undefined as never)
      throw`,
      ],
    },
  ],
  'UAICP-22': [
    {
      clause: 'no policy is asked',
      in: 'governance/admit',
      swap: [`if (made.risk === 'read_only') return { type: 'allow', call: admitted }`, ''],
    },
    {
      clause: 'the log is complete',
      in: 'governance/settle',
      swap: [
        `const effect = risk === 'read_only' ? 'none' : 'applied'`,
        `if (risk === 'read_only') return { type: 'done', result: result.value, evidence: toEvidence(request, tool, { ...data, at: 0 }, payload.value) }
  const effect = 'applied'`,
      ],
    },
  ],
  'UAICP-23': [
    {
      clause: 'deny blocks',
      in: 'governance/judgeWrite',
      swap: [
        `if (decision.effect === 'deny') {`,
        `if (decision.effect === 'deny' && made.risk === 'write_high_risk') {`,
      ],
    },
    {
      clause: 'an error blocks',
      in: 'governance/judge',
      swap: [
        `return { effect: 'deny', reasons: [reason('POLICY_ERROR', policy.id, problem)] }`,
        'return undefined',
      ],
    },
    {
      clause: 'no opinion blocks',
      in: 'governance/judge',
      swap: [
        `const decision = combineDecisions(counting) ?? {
    effect: 'deny' as const,`,
        `const decision = combineDecisions(counting) ?? {
    effect: 'allow' as const,`,
      ],
    },
    {
      clause: 'a hanging policy blocks',
      in: 'governance/judge',
      swap: [
        'withTimeout(decide, limits.policyTimeoutMs, timer)',
        'withTimeout(decide, limits.policyTimeoutMs * 1e6, timer)',
      ],
    },
  ],
  'UAICP-24': [
    {
      clause: 'an approval is needed',
      in: 'governance/judgeWrite',
      swap: [
        `if (decision.effect === 'allow' && made.risk !== 'write_high_risk') {`,
        `if (decision.effect === 'allow') {`,
      ],
      by: 'core/gates',
    },
    {
      clause: 'bound to the arguments',
      in: 'governance/actionDigest',
      swap: [
        'risk, args_hash, identity, rollback, policy_hash }',
        'risk, identity, rollback, policy_hash }',
      ],
      by: 'token-attacks',
    },
    {
      clause: 'not by the agent itself',
      in: 'governance/redeem',
      swap: [`if (self !== undefined) return refuse('APPROVAL_SELF', self)`, ''],
      by: 'core/gates',
    },
    {
      clause: 'as many as the quorum',
      in: 'governance/redeem',
      swap: ['if (ids.size >= quorum) return redeemed', 'return redeemed'],
      by: 'core/gates',
    },
  ],
  'UAICP-25': [
    {
      clause: 'required of a high-risk write',
      in: 'governance/declareRollback',
      swap: [
        `return made.risk === 'write_high_risk' ? refuse('none declared') : undefined`,
        'return undefined',
      ],
    },
    {
      clause: 'type, target and payload',
      in: 'governance/declareRollback',
      swap: ['if (issue) return refuse(`${issue.path} ${issue.message}`)', ''],
    },
    {
      clause: 'in the envelope of the intent',
      in: 'governance/start',
      swap: [
        'actor: request.agent, rollback, durable: true, seal',
        'actor: request.agent, durable: true, seal',
      ],
    },
    {
      clause: 'something inverts it',
      in: 'governance/declareRollback',
      swap: [
        'request.findTool(target) ? action : refuse(`there is no tool "${target}"`)',
        'action',
      ],
    },
    {
      clause: 'impossible is said',
      in: 'governance/declareRollback',
      swap: [`payload: 'This cannot be undone.'`, `payload: 'ok'`],
    },
  ],
  'UAICP-26': [
    {
      clause: 'the last first',
      in: 'governance/effectsOf',
      swap: ['[...state.effects, ...open].reverse()', '[...state.effects, ...open]'],
    },
    {
      clause: 'all of them',
      in: 'governance/undoEffects',
      swap: [
        'for (const reference of effectsOf(request)) {',
        'for (const reference of effectsOf(request).slice(0, 1)) {',
      ],
    },
    {
      clause: 'those of a delivered child too',
      in: 'governance/settleChild',
      swap: ['effects: effectsOf(child)', 'effects: ([] as ReturnType<typeof effectsOf>)'],
    },
    {
      clause: 'but not those that the child undid itself',
      in: 'governance/settleChild',
      swap: ['undo.get(effectKey(one))?.settled ?? one', 'one'],
    },
  ],
  'UAICP-27': [
    {
      clause: 'outcome of a failed call',
      in: 'governance/submitSettled',
      swap: [
        `rest.effect === 'in_doubt' ? 'uncertain' : 'failure'`,
        `rest.effect === 'in_doubt' ? 'uncertain' : 'success'`,
      ],
    },
    {
      clause: 'actor of a call',
      in: 'governance/submitSettled',
      swap: ['rest.settled_by ? request.system : request.agent', 'request.system'],
    },
  ],
  'UAICP-28': [
    {
      clause: 'RFC 3339 in UTC',
      in: 'governance/timestampOf',
      swap: ['new Date(at).toISOString()', 'new Date(at).toUTCString()'],
    },
    {
      clause: 'W3C trace ids',
      in: 'governance/draftRequest',
      swap: [`newUuid(core).replaceAll('-', '')`, 'newUuid(core)'],
    },
    {
      clause: 'a wrong request id is refused',
      in: 'governance/draftRequest',
      swap: [
        `if (request_id !== undefined && !hasId)
    reasons.push(`,
        `if (request_id !== undefined && !hasId && hasTraceId)
    reasons.push(`,
      ],
    },
  ],
  'UAICP-29': [
    {
      clause: 'agents are agents',
      in: 'governance/GovernedRequest.constructor',
      swap: [
        `this.agent = { type: 'agent', id: state.identity.agent_id }`,
        `this.agent = { type: 'system', id: state.identity.agent_id }`,
      ],
    },
    {
      clause: 'approvals are people’s',
      in: 'governance/review',
      swap: ['approvers[0] ?? request.system)', 'request.agent)'],
    },
    {
      clause: 'denials, too',
      in: 'governance/review',
      swap: ['isAgent ? request.system : by', 'by'],
    },
  ],
  'UAICP-30': [
    {
      clause: 'envelopes are valid',
      in: 'governance/createLineWriter',
      swap: ['"outcome":', '"outcomes":'],
    },
    {
      clause: 'reports are valid',
      in: 'governance/runVerifier',
      swap: ['generated_at: timestampOf(core.clock.now()),', `generated_at: 'now',`],
    },
  ],
  'UAICP-31': [
    {
      clause: 'the subtype of evidence is namespaced',
      in: 'governance/toEvidence',
      swap: [`'uaicp:subtype'`, 'subtype'],
    },
  ],
  'UAICP-32': [
    {
      clause: 'in the result',
      in: 'governance/toFailedSafe',
      swap: [`outcome: 'uncertain'`, `outcome: 'failure' as never`],
    },
    {
      clause: 'in the last entry',
      in: 'governance/failSafe',
      swap: [
        `{ outcome: 'uncertain', streaming, durable: true }`,
        `{ outcome: 'failure', streaming, durable: true }`,
      ],
    },
  ],
  'UAICP-33': [
    {
      clause: 'by type and source',
      in: 'governance/findMissing',
      swap: [
        'missing.push({ type, source, subtype, min, found: fresh.length })',
        'missing.push({ type, source: undefined, subtype, min, found: fresh.length })',
      ],
    },
    {
      clause: 'with a reason code',
      in: 'governance/findMissing',
      swap: ["reasons.push(reason('EVIDENCE_MISSING', subject, `${fresh.length} of ${min}`))", ''],
    },
    {
      clause: 'every one',
      in: 'governance/findMissing',
      swap: ['for (const need of task.needs) {', 'for (const need of task.needs.slice(0, 1)) {'],
    },
    {
      clause: 'of a request that is cancelled or too late, too',
      in: 'governance/toFailure',
      swap: ['[...reasons, ...needed], missing }', 'reasons, missing: [] }'],
    },
  ],
  'UAICP-34': [
    {
      clause: 'undone after fail_safe',
      in: 'governance/failSafe',
      swap: ['const undo = await undoEffects(request)', 'const undo: Undo[] = []'],
    },
    {
      clause: 'or reported as not undone',
      in: 'governance/undoOne',
      swap: [
        `return { status: 'failed', tries, error: thrownText(error) }`,
        `return { status: 'done', tries }`,
      ],
    },
    {
      clause: 'a failing inversion is tried again',
      in: 'governance/undoOne',
      swap: ['if (tries >= request.core.limits.undoTries)', 'if (tries >= 1)'],
    },
    {
      clause: 'in doubt without a probe is unknown',
      in: 'governance/undoOne',
      swap: [
        `return { status: isClear ? 'done' : 'unknown', tries }`,
        `return { status: 'done', tries }`,
      ],
    },
  ],
  'UAICP-36': [
    { clause: '0.2 is read', in: 'governance/isSupportedVersion', swap: ['^0\\.[23]', '^0\\.[3]'] },
    {
      clause: 'another minor version is refused',
      in: 'governance/isSupportedVersion',
      swap: ['^0\\.[23]', '^0\\.[2-9]'],
    },
    { clause: '0.3 is written', in: 'governance/UAICP_VERSION', swap: [`'0.3'`, `'0.2'`] },
  ],
  'UAICP-35': [
    {
      clause: 'the report notices a run that hides its uncertainty',
      in: 'governance/toFailedSafe',
      swap: [`outcome: 'uncertain'`, `outcome: 'failure' as never`],
    },
    {
      clause: 'the report notices writes that are not undone',
      in: 'governance/effectsOf',
      swap: ['[...state.effects, ...open].reverse()', '[]'],
    },
  ],
  'UAICP-37': [
    {
      clause: 'no import of a model client',
      in: 'governance/src/contract/reason.ts',
      swap: [
        'import { SkeinError',
        `import type {} from '@skein/ai'
import { SkeinError`,
      ],
    },
    {
      clause: 'no word of a model in what it offers',
      in: 'governance/src/index.ts',
      swap: [
        'export { governor',
        `export { governor as promptLoop } from './governor.ts'
export { governor`,
      ],
    },
  ],
  'UAICP-02': [
    {
      clause: 'the id of the framework’s call is the id of the call',
      in: 'governance/callThrough',
      swap: ['{ id', '{ id: undefined && id'],
    },
  ],
}
