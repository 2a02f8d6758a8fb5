import type { ApprovalRequest } from '@skein/governance'
import type { CustomEvent, InterruptAnswer } from '@skein/threads'
import { RuntimeError } from '../contract/error.ts'
import type { RuntimeEvent, VariablesRequested } from '../contract/event.ts'
import type { VariableDefinition } from '../definitions/types.ts'
import { type KernelState, type OpenInterrupt, type PendingVariables, sideOf, registryOf } from '../state/kernel-state.ts'
import { openVariables, requestedRelation } from '../state/variables.ts'
import { openForPeople, waitingCount } from '../state/questions.ts'
import { type ApprovalDecision, FOUND_EFFECTS, type Inbox, type WaitingDetail, type WaitingItem } from '../contract/runtime-api.ts'
import { queuedTool } from '../thread/effects.ts'
import { isSecret } from '../thread/env.ts'
import { jsonCopy } from '../thread/facade-buffer.ts'
import { type ApiContext, type ApiEnvironment, createApiContext, load } from './api-context.ts'
import { editThread, isOver, threadIsOver } from './edit-thread.ts'
import type { LoadedThread } from '../state/fold-cache.ts'
import { newGrant } from './grants-api.ts'
import {
  argumentParserOf,
  canonicalJson,
  isPlainObject,
  type JsonObject,
  type JsonValue,
  type MessageJSON,
  messageOf,
  type RecordedArguments,
} from '@skein/base'
import { safeText } from '@skein/base/safe-text'
import { messageToJSON, type ToolCall } from '@skein/ai'
import { foreseeAdmission } from '../calls/session-governor.ts'
import { type CutOff, cutOffOf } from '../governance/in-doubt.ts'
import { checkSchema, type NamedSchemas } from '@skein/base/shape'
import { argumentsToRun, callIdOf, findCall, sentArguments } from '../state/calls.ts'
import type { Commit, ThreadHead } from '../store/store.ts'

/** Signs an approval for an authenticated person; returns the token. */
type SignApproval = (request: ApprovalRequest, by: string) => Promise<string>

/**
 * Creates the part of the inbox that reads one question and records answers. Only the first answer is accepted.
 * `waitingLists` has the other part, which lists what waits.
 */
export function createInbox(
  environment: ApiEnvironment,
  sign: SignApproval,
): Omit<Inbox, 'list' | 'page'> {
  const context = createApiContext(environment)
  return {
    get: (item) => waitingDetail(context, item),
    approve: (decision) =>
      decision.with === undefined
        ? approve(context, decision, sign)
        : approveChanged(context, { ...decision, with: decision.with }, sign),
    deny: (decision) =>
      answer(context, decision, 'approval', { type: 'deny', reason: decision.reason }),
    settle: (item, found) => {
      if (!FOUND_EFFECTS.includes(found)) return Promise.reject(notFound(item.interruptId, found))
      return answer(context, item, 'in_doubt', { type: 'result', value: found })
    },
    answer: (item, given) => answer(context, item, 'input', given),
  }
}

function notFound(interruptId: string, found: unknown): RuntimeError {
  const text = JSON.stringify(found)?.slice(0, 100)
  return new RuntimeError(
    `${text} does not say whether the call of ${interruptId} had its effect.`,
    {
      code: 'ANSWER_INVALID',
      hint: `Answer ${FOUND_EFFECTS.join(', ')}.`,
    },
  )
}

/**
 * Records an approval. The waiting call gets its answer once as many people have approved as the policy requires.
 */
async function approve(
  context: ApiContext,
  decision: ApprovalDecision,
  sign: SignApproval,
): Promise<void> {
  const { threadId, interruptId, by, reason } = decision
  const own = decision.tokens ?? (await signed(context, decision, sign))
  await editThread(context, { threadId, point: 'approve' }, async (thread) => {
    const { state } = thread
    const open = findOpen(context, state, interruptId, 'approval')
    checkSeen(open, decision)
    const waiting = waitingCount(state, context.clock.now()) - 1
    const quorum = approvalOf(open.interrupt.request)?.quorum ?? 1
    const earlier = quorum > 1 ? await partialApprovals(context, threadId, interruptId) : []
    if (earlier.some((approval) => approval.by === by)) throw answered(state.threadId, interruptId)
    const tokens = [...earlier.flatMap((approval) => approval.tokens), ...own]
    if (tokens.length < quorum && own.length > 0) {
      const append = [givenEvent(context, { threadId, interruptId, by }, own)]
      return { result: undefined, change: { append } }
    }
    const answer: InterruptAnswer = {
      type: 'approve',
      token: tokens.length > 0 ? tokens : undefined,
      reason,
    }
    const given = await grantOf(context, thread, open, decision)
    const append = [...given.events, answerEvent(context, decision, answer)]
    const wake = { by: context.clock.now() }
    const { audit, blobs } = given
    return { result: undefined, change: { append, head: { waiting }, wake }, audit, blobs }
  })
}

/** Makes the grant that an approval includes: for the tool and the risk of the call that the person has seen. */
async function grantOf(
  context: ApiContext,
  thread: LoadedThread,
  { interrupt, effectId }: OpenInterrupt,
  { grantForMs: forMs, by, reason }: ApprovalDecision,
): Promise<{
  readonly events: readonly RuntimeEvent[]
  readonly audit?: Commit['audit']
  readonly blobs?: Commit['blobs']
}> {
  if (forMs === undefined) return { events: [] }
  const request = approvalOf(interrupt.request)
  const { tool, risk = 'read_only' } = request?.action ?? {}
  if (!request || tool === undefined || risk === 'read_only' || effectId !== undefined)
    throw notGrantable(interrupt.id, 'it is not a call of a tool that writes')
  if (request.quorum > 1) throw notGrantable(interrupt.id, 'several people have to approve it')
  const { made, ...writes } = await newGrant(context, thread, { tool, forMs, by, reason, risk })
  return { events: [made], ...writes }
}

function notGrantable(interruptId: string, why: string): RuntimeError {
  return new RuntimeError(`${interruptId} cannot be approved for a time: ${why}.`, {
    code: 'ANSWER_INVALID',
    hint: 'Approve it without `grantForMs`; nothing was recorded.',
  })
}

/**
 * Signs an approval for the person. The waiting call is looked up first, so that no token is created if it already
 * has its answer.
 */
async function signed(
  context: ApiContext,
  decision: ApprovalDecision,
  sign: SignApproval,
): Promise<readonly string[]> {
  const { threadId, interruptId, by } = decision
  const { state } = await load(context, threadId)
  const open = findOpen(context, state, interruptId, 'approval')
  checkSeen(open, decision)
  const request = approvalOf(open.interrupt.request)
  if (!request) return []
  checkExcluded(request, interruptId, by)
  return [await sign(request, by)]
}

/**
 * Denies a call, and makes and approves another one with changed arguments in its place, in one commit. The
 * new call has its own id and digest: the governor, which allows or denies calls, judges it as any other call,
 * before anything is written and again before it runs.
 */
async function approveChanged(
  context: ApiContext,
  decision: ApprovalDecision & { readonly with: JsonObject },
  sign: SignApproval,
): Promise<void> {
  const { threadId, interruptId, by, reason } = decision
  const { head, state: now } = await load(context, threadId)
  const asked = findOpen(context, now, interruptId, 'approval')
  const found = findCall(now, asked.interrupt.toolCallId)
  if (decision.grantForMs !== undefined)
    throw notGrantable(interruptId, 'its arguments are changed')
  if (!found || asked.effectId !== undefined || decision.tokens)
    throw new RuntimeError(`The request ${interruptId} cannot be approved with changes.`, {
      code: 'ANSWER_INVALID',
      hint: 'Only calls can be changed, and only the runtime signs the changed call.',
    })
  const { call, entry } = found
  const { toolCallId, toolName } = call.call
  const { args, sent, parsed } = await checkedChange(context, now, toolName, decision.with)
  if (canonicalJson(args) === canonicalJson(argumentsToRun(call)))
    return approve(context, decision, sign)
  checkSeen(asked, decision)
  const changedTo = context.ids()
  const turnId = asked.turnId
  const registry = registryOf(context.registry, now)
  const other = sentArguments(sent, args)
  const judged = { tool: toolName, args, turnId, ...(other && { sent: other }) }
  const admission = await foreseeAdmission(
    {
      agent: registry.agent(now.agent),
      head,
      state: now,
      environment: { ...context, registry },
    },
    { ...judged, id: `${entry.message.id}:${changedTo}`, toolCallId: changedTo },
  )
  if (admission.type === 'deny')
    throw new RuntimeError(`"${toolName}" may not be called with these arguments.`, {
      code: 'ANSWER_INVALID',
      hint: `The policy says: ${admission.reasons.map(({ code, detail }) => detail ?? code).join('; ')}.`,
    })
  const request = admission.type === 'review' ? admission.request : undefined
  if (request) checkExcluded(request, interruptId, by)
  const token = request && (await sign(request, by))
  await editThread(context, { threadId, point: 'approve' }, ({ state }) => {
    const open = findOpen(context, state, interruptId, 'approval')
    const { entry: current } = findCall(state, toolCallId)!
    const at = context.at()
    const why = `A person changed its arguments. The call ${changedTo} runs in its place.`
    const made: ToolCall = {
      toolCallId: changedTo,
      toolName,
      arguments: sent,
      metadata: { skein: { changedFrom: toolCallId } },
    }
    const append: RuntimeEvent[] = [
      answerEvent(context, decision, { type: 'deny', reason: why }),
      {
        type: 'message_updated',
        at,
        messageId: current.message.id,
        message: withCallAfter(messageToJSON(current.message), toolCallId, made),
      },
      { type: 'call_changed', at, turnId: open.turnId, toolCallId, changedTo, parsed, by },
    ]
    let waiting = waitingCount(state, context.clock.now()) - 1
    if (request) {
      const own = context.ids()
      const interrupt = { id: own, toolCallId: changedTo, kind: 'approval', request } as const
      const expiresAt = open.expiresAt !== undefined && { expiresAt: open.expiresAt }
      const place = { at, turnId: open.turnId, parsed }
      append.push({ type: 'interrupt_opened', ...place, interrupt, ...expiresAt })
      if (request.quorum > 1) {
        waiting++
        append.push(givenEvent(context, { threadId, interruptId: own, by }, [token!]))
      } else {
        const given: InterruptAnswer = { type: 'approve', token: [token!], reason }
        append.push(answerEvent(context, { interruptId: own, by }, given))
      }
    }
    const wake = { by: context.clock.now() }
    return { result: undefined, change: { append, head: { waiting }, wake } }
  })
}

interface ChangedArguments {
  /** What the person gave, as a model sends it. */
  readonly sent: JsonObject
  /** The arguments with which the call runs. */
  readonly args: JsonObject
  /** The same, if the tool has parsed them. */
  readonly parsed: RecordedArguments | undefined
}

/** Has the tool parse a copy of changed arguments. Throws if they do not fit its schema. */
async function checkedChange(
  context: ApiContext,
  state: KernelState,
  toolName: string,
  given: JsonObject,
): Promise<ChangedArguments> {
  const args = jsonCopy(given, {
    subject: `The changed arguments of "${toolName}"`,
    code: 'ANSWER_INVALID',
    maxBytes: context.limits.maxMessageBytes,
  })
  const agent = registryOf(context.registry, state).agent(state.agent)
  const side = sideOf(agent, state.session?.turn ?? { side: 'a' })
  const found = side.prompt.tools.find((one) => one.name === toolName)
  const invalid = (why: string): RuntimeError =>
    new RuntimeError(`"${toolName}" cannot be called with these arguments: ${why}.`, {
      code: 'ANSWER_INVALID',
      hint: 'Nothing was recorded; the call still waits.',
    })
  if (found?.kind !== 'tool' || !found.tool.run) throw invalid('its tool does not run here')
  if (!isPlainObject(args)) throw invalid('they are not an object')
  const sent = args as JsonObject // a plain object of JSON
  const parser = argumentParserOf(found.tool)
  // A schema decides by itself what fits: of what it coerces, its JSON Schema names only the type that it makes.
  if (parser) {
    const made = await parser.parse(sent).catch((error: unknown) => {
      throw invalid(messageOf(error).replace(/\.$/, ''))
    })
    return { sent, args: made, parsed: { arguments: made, schema: parser.schema } }
  }
  const { parameters } = found.tool
  const defined = Object.entries((parameters['$defs'] ?? {}) as NamedSchemas)
  const named = Object.fromEntries(defined.map(([key, schema]) => [`#/$defs/${key}`, schema]))
  const problems = checkSchema(args, parameters, { field: 'arguments', named })
  if (problems.length > 0)
    throw invalid(problems.map(({ field, message }) => `${field} ${message}`).join('; '))
  return { sent, args: sent, parsed: undefined }
}

/** Returns the message with the call `made` inserted directly after the call `toolCallId`. */
function withCallAfter(message: MessageJSON, toolCallId: string, made: ToolCall): MessageJSON {
  const { toolCalls = [] } = message as { readonly toolCalls?: readonly ToolCall[] }
  const place = toolCalls.findIndex((one) => one.toolCallId === toolCallId)
  return { ...message, toolCalls: toolCalls.toSpliced(place + 1, 0, made) } as MessageJSON
}

/** Throws if the person has seen another request than the one that waits. */
function checkSeen({ interrupt }: OpenInterrupt, { interruptId, digest }: ApprovalDecision): void {
  if (digest === undefined || digest === approvalOf(interrupt.request)?.digest) return
  throw new RuntimeError(`The decision about ${interruptId} was made on another call.`, {
    code: 'ANSWER_INVALID',
    hint: 'List what waits again: the digest is not that of the call that would run.',
  })
}

function checkExcluded({ excluded }: ApprovalRequest, interruptId: string, by: string): void {
  if (!excluded.includes(by)) return
  throw new RuntimeError(`${by} may not approve ${interruptId}.`, {
    code: 'ANSWER_INVALID',
    hint: 'The policy excludes them, e.g. because they asked for the action. Somebody else has to approve.',
  })
}

interface Item {
  readonly threadId: string
  readonly interruptId: string
  readonly by?: string
}

async function answer(
  context: ApiContext,
  { threadId, interruptId, by }: Item,
  kind: WaitingItem['kind'],
  given: InterruptAnswer,
): Promise<void> {
  const kept = jsonCopy(given, {
    subject: `The answer to ${interruptId}`,
    code: 'ANSWER_INVALID',
    maxBytes: context.limits.maxMessageBytes,
  }) as InterruptAnswer // `jsonCopy` keeps the type
  // A thread that is over may still ask whether a call took effect, or about a write that was not undone.
  const target = { threadId, point: 'answer_interrupt', allowsOver: true }
  await editThread(context, target, async (thread) => {
    const { state } = thread
    if (state.isErased) throw threadIsOver(thread)
    const open = state.interrupts.get(interruptId)
    if (isOver(thread) && !open?.isDetached) throw threadIsOver(thread)
    findOpen(context, state, interruptId, kind)
    const append = [answerEvent(context, { interruptId, by }, kept)]
    const head = { waiting: waitingCount(state, context.clock.now()) - 1 }
    if (open?.isDetached && !open.write) {
      // Nothing waits for the answer. The model gets it as a message with its next request.
      const found = await findingOf(context, thread, open, { answer: kept, by })
      return { result: undefined, change: { append, head }, ...found }
    }
    const wake = { by: context.clock.now() }
    return { result: undefined, change: { append, head, wake } }
  })
}

/**
 * Returns the records of the audit log for what a person found out about a call that has ended. While the session of the
 * call runs there are none: its governor is told when the session ends.
 */
async function findingOf(
  context: ApiContext,
  { head, state }: LoadedThread,
  { interrupt: { toolCallId } }: OpenInterrupt,
  { answer: given, by = 'unknown' }: { readonly answer: InterruptAnswer; readonly by?: string },
): Promise<Pick<Commit, 'audit' | 'blobs'>> {
  const { call, entry } = findCall(state, toolCallId) ?? {}
  const place = entry && state.places.get(entry.message.id)
  if (!call || place === undefined || place >= (state.session?.firstEntry ?? Infinity)) return {}
  const value = given.type === 'result' ? given.value : undefined
  const found = value === 'applied' || value === 'absent' ? value : 'unknown'
  const tool = call.call.toolName
  const { agent } = state
  const callId = callIdOf(state, toolCallId)
  return context.governors.recordFinding({ head, agent, call: callId, tool, found, by })
}

function answerEvent(
  context: ApiContext,
  { interruptId, by }: { readonly interruptId: string; readonly by?: string },
  answer: InterruptAnswer,
): RuntimeEvent {
  const answeredBy = by !== undefined && { answeredBy: by }
  return { type: 'interrupt_answered', at: context.at(), interruptId, answer, ...answeredBy }
}

function findOpen(
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
  if (open.answer) throw answered(state.threadId, interruptId)
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

function answered(threadId: string, interruptId: string): RuntimeError {
  return new RuntimeError(`The request ${interruptId} of thread ${threadId} was answered before.`, {
    code: 'ALREADY_ANSWERED',
    hint: 'The first answer counts. Where several people have to approve, each of them counts once.',
  })
}

/** The name of the event that records one person's approval where several people have to approve. */
export const APPROVAL_GIVEN = 'approval_given'

/**
 * Returns the event of one person's approval. The tokens are encrypted, so that nobody else can use them. The
 * event is transient, because it is bookkeeping and not part of the conversation.
 */
function givenEvent(
  context: ApiContext,
  { threadId, interruptId, by }: Item,
  tokens: readonly string[],
): CustomEvent {
  const sealed = context.vault.seal(JSON.stringify(tokens), contextOf(threadId, interruptId))
  return {
    type: 'custom_event',
    at: context.at(),
    name: APPROVAL_GIVEN,
    data: { interruptId, by, sealed },
    isTransient: true,
  }
}

/** One person's approval of a call that several people have to approve. */
interface PartialApproval {
  readonly by: string
  readonly tokens: readonly string[]
}

/** Reads from the log the approvals that a waiting call has received so far. */
async function partialApprovals(
  { store, vault }: ApiContext,
  threadId: string,
  interruptId: string,
): Promise<readonly PartialApproval[]> {
  const given: PartialApproval[] = []
  for (const { event } of await store.events(threadId)) {
    if (
      event.type !== 'custom_event' ||
      event.name !== APPROVAL_GIVEN ||
      !isPlainObject(event.data)
    )
      continue
    const { interruptId: of, by, sealed } = event.data
    if (of !== interruptId || typeof by !== 'string' || typeof sealed !== 'string') continue
    // `approve` sealed these tokens as a JSON list.
    const tokens = JSON.parse(vault.open(sealed, contextOf(threadId, interruptId))) as string[]
    given.push({ by, tokens })
  }
  return given
}

function contextOf(threadId: string, interruptId: string): string {
  return `${threadId}/approval/${interruptId}`
}

/** A question and the thread that asks it. */
interface Found {
  readonly head: ThreadHead
  readonly state: KernelState
  readonly open: OpenInterrupt
  readonly path: readonly string[]
}

/** Returns a question as the API shows it. */
export function toItem(context: ApiContext, { head, state, open, path }: Found): WaitingItem {
  const registry = registryOf(context.registry, state)
  const { interrupt, openedAt, expiresAt, effectId, write } = open
  const effect = effectId === undefined ? undefined : state.effects.get(effectId)?.scheduled
  const found = effect || write ? undefined : findCall(state, interrupt.toolCallId)?.call
  const toolName = write?.toolName ?? effect?.name ?? found?.call.toolName ?? ''
  const risk = effect
    ? (queuedTool(registry, toolName)?.governance.risk ?? registry.effects.get(toolName)?.risk)
    : registry.tools.get(toolName)?.governance.risk
  const approval = interrupt.kind === 'approval' ? approvalOf(interrupt.request) : undefined
  const sent = (write?.arguments ?? effect?.args ?? found?.call.arguments ?? null) as JsonValue // arguments of a call are JSON
  // The digest covers the arguments of the action, and the call runs with these or asks again. A request of another
  // shape, which a call of a child has, is about another call.
  const isOwn = approval !== undefined && interrupt.request === approval
  const logged = found ? argumentsToRun(found) : sent
  const judged = isOwn ? approval.action.args : logged
  const toRun = sentArguments(judged, logged) ?? logged // the same value keeps the order of its members
  const other = sentArguments(sent, toRun)
  return {
    threadId: head.id,
    rootId: head.rootId,
    interruptId: interrupt.id,
    toolCallId: interrupt.toolCallId,
    toolName,
    arguments: toRun,
    ...(other !== undefined && { sentArguments: other }),
    kind: interrupt.kind as WaitingItem['kind'], // `openForPeople` returns no others
    ...(effectId !== undefined && { effectId }),
    path,
    openedAt,
    expiresAt,
    risk,
    isIrreversible: approval && isIrreversible(approval),
    request: approval,
    question: approval ? undefined : ((interrupt.request ?? null) as JsonValue), // the log is JSON
  }
}

/** Returns a request for variables as an item: names, types and descriptions, never values. */
export function variablesItem(
  context: ApiContext,
  { head, state, path }: Omit<Found, 'open'>,
  requested: VariablesRequested,
): WaitingItem {
  const { requestId, toolName, toolCallId = requestId, missing } = requested
  const declared = requestedVariables(context, state, requested)
  return {
    threadId: head.id,
    rootId: head.rootId,
    interruptId: requestId,
    toolCallId,
    toolName,
    arguments: requested.arguments,
    kind: 'variables',
    path,
    openedAt: requested.at,
    expiresAt: requested.expiresAt,
    variables: missing.map((name) => {
      const unknown: VariableDefinition = { name, type: 'secret' }
      const { type = 'text', description } = declared.find((one) => one.name === name) ?? unknown
      return description === undefined ? { name, type } : { name, type, description }
    }),
  }
}

/**
 * Returns the variables that the requested child declares. A variable is also a secret if it is one for the agent
 * that needs the child. Callers treat a variable that is not declared, e.g. because the definitions were changed, as
 * a secret.
 */
export function requestedVariables(
  context: ApiContext,
  state: KernelState,
  requested: VariablesRequested,
): readonly VariableDefinition[] {
  const found = requestedRelation(context.registry, state, requested)
  if (!found) return []
  const asker = { ...state, agent: found.agent.name }
  return found.relation.requiredVariables.map((one) =>
    isSecret(context, asker, one.name) ? { ...one, type: 'secret' } : one,
  )
}

/** Whether the call that a person is asked to approve is declared as one that cannot be undone. */
export function isIrreversible(request: unknown): boolean {
  return approvalOf(request)?.action.rollback?.type === 'impossible'
}

/** The largest number of pieces of evidence (recorded facts) that are shown with a decision. */
const MAX_EVIDENCE = 100

/** Reads one item from the log, where it stays after it was answered. */
async function waitingDetail(
  context: ApiContext,
  { threadId, interruptId }: Item,
): Promise<WaitingDetail> {
  const { head, state } = await load(context, threadId)
  const path = await new Paths(context).of(head)
  const pending = state.variables.get(interruptId)
  if (pending) return variablesDetail(context, { head, state, path }, pending)
  const log = (await context.store.events(threadId)).map(({ event }) => event)
  const place = log.findIndex(
    (event) => event.type === 'interrupt_opened' && event.interrupt.id === interruptId,
  )
  const opened = log[place]
  if (opened?.type !== 'interrupt_opened' || !PEOPLE.has(opened.interrupt.kind))
    throw new RuntimeError(`Thread ${threadId} has no request ${interruptId}.`, {
      code: 'INTERRUPT_NOT_FOUND',
      hint: 'It may belong to another thread; `inbox.list` lists what is open.',
    })
  const { interrupt, turnId, at: openedAt, expiresAt, effectId } = opened
  const open: OpenInterrupt = {
    interrupt,
    turnId,
    openedAt,
    expiresAt,
    effectId,
    isDetached: false,
    isDropped: false,
    write: opened.write,
    answer: undefined,
    answeredAt: undefined,
    answeredBy: undefined,
    attachments: [],
  }
  const item = toItem(context, { head, state, open, path })
  const answered = log.find(
    (event) => event.type === 'interrupt_answered' && event.interruptId === interruptId,
  )
  const changed = log.find(
    (event) => event.type === 'call_changed' && event.toolCallId === interrupt.toolCallId,
  )
  const isOpen = openForPeople(state).some((one) => one.interrupt.id === interruptId)
  const isLate = expiresAt !== undefined && Date.parse(expiresAt) <= context.clock.now()
  const rollback = item.request?.action.rollback
  return {
    ...item,
    status: answered ? 'decided' : isOpen && !isLate ? 'waiting' : 'over',
    sentence: sentenceOf(context, item),
    undo: (rollback && rollback.type !== 'impossible' ? rollback : null) as JsonValue, // the log is JSON
    evidence: log
      .slice(0, place)
      .flatMap((event) => (event.type === 'evidence_added' ? [event] : []))
      .slice(-MAX_EVIDENCE)
      .map(({ evidenceId, kind, at, summary, toolCallId }) => ({
        evidenceId,
        kind,
        at,
        summary,
        toolCallId,
      })),
    approvedBy: log.flatMap((event) => {
      if (event.type !== 'custom_event' || event.name !== APPROVAL_GIVEN) return []
      const { data, at } = event
      const isOwn = isPlainObject(data) && data['interruptId'] === interruptId
      return isOwn ? [{ by: String(data['by']), at }] : []
    }),
    decision: decisionOf(answered, changed),
  }
}

/** Returns a request for variables, also after somebody has provided the values, which are left out. */
function variablesDetail(
  context: ApiContext,
  found: Omit<Found, 'open'>,
  { requested, provided }: PendingVariables,
): WaitingDetail {
  const item = variablesItem(context, found, requested)
  const isOpen = openVariables(found.state, context.clock.now()).some(
    (one) => one.requested === requested,
  )
  const given = provided && ({ type: 'provided', at: provided.at, by: provided.by } as const)
  return {
    ...item,
    status: given ? 'decided' : isOpen ? 'waiting' : 'over',
    sentence: sentenceOf(context, item),
    undo: null,
    evidence: [],
    approvedBy: [],
    decision: given,
  }
}

function decisionOf(
  answered: RuntimeEvent | undefined,
  changed: RuntimeEvent | undefined,
): WaitingDetail['decision'] {
  if (answered?.type !== 'interrupt_answered') return undefined
  const { answer, at, answeredBy: by } = answered
  return {
    type: answer.type,
    at,
    by,
    reason: 'reason' in answer ? answer.reason : undefined,
    changedTo: changed?.type === 'call_changed' ? changed.changedTo : undefined,
  }
}

const PEOPLE: ReadonlySet<string> = new Set<WaitingItem['kind']>(['approval', 'input', 'in_doubt'])

const CUT_OFF: Readonly<Record<CutOff, string>> = {
  crash: 'the process died',
  time_limit: 'its time limit passed',
  stop: 'was stopped',
  cut: 'was stopped by a new message',
}

/** Returns one sentence about what the person is asked for; the arguments are shown beside it. */
function sentenceOf(
  { registry }: ApiContext,
  { kind, toolName, path, question, variables = [] }: WaitingItem,
): string {
  const [who, tool] = [path.at(-1) ?? '', toolName].map((text) => safeText(text, { isLine: true }))
  if (kind === 'variables') {
    const count = variables.length === 1 ? 'a value' : `${variables.length} values`
    return `${who} needs ${count} before it can start ${tool}.`
  }
  if (kind === 'input') return `${who} asks for the result of ${tool}.`
  const asked = isPlainObject(question) && question['undo'] !== undefined
  if (asked) return safeText(String(question['question']), { isLine: true })
  if (kind === 'in_doubt')
    return `${who} ran ${tool} and ${CUT_OFF[cutOffOf(question)]}: did it have its effect?`
  const about = registry.tools.get(toolName)?.description
  const text = about === undefined ? '' : `: ${safeText(about, { isLine: true, maxChars: 300 })}`
  return `${who} wants to run ${tool}${text}`
}

/**
 * Finds the approval request to be signed: the request of a waiting call itself, or the one in its `approval` or
 * `request` field.
 */
function approvalOf(request: unknown): ApprovalRequest | undefined {
  if (!isPlainObject(request)) return undefined
  if (typeof request['digest'] === 'string' && isPlainObject(request['action']))
    return request as unknown as ApprovalRequest // the governor wrote this request
  return approvalOf(request['approval'] ?? request['request'])
}

/** Finds the names of the agents from the root thread down to a thread; each thread is looked up once. */
export class Paths {
  readonly #context: ApiContext
  readonly #known = new Map<string, Promise<readonly string[]>>()

  constructor(context: ApiContext) {
    this.#context = context
  }

  of(head: ThreadHead): Promise<readonly string[]> {
    const known = this.#known.get(head.id) ?? this.#find(head)
    this.#known.set(head.id, known)
    return known
  }

  async #find({ agent, parentId }: ThreadHead): Promise<readonly string[]> {
    const parent = parentId === null ? undefined : await this.#context.store.head(parentId)
    return parent ? [...(await this.of(parent)), agent] : [agent]
  }
}
