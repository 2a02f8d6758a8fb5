import {
  defer,
  type SettledOutcome,
  type Tool,
  type ToolAdmission,
  type ToolCall,
  type ToolContext,
  withToolContext,
} from '@skein/ai'
import {
  argumentParserMember,
  argumentParserOf,
  isPlainObject,
  type JsonObject,
  type JsonValue,
} from '@skein/base'
import { type Admission, type AdmittedCall, type ApprovalAnswer, reason } from '@skein/governance'
import type { DrainContext } from '../context/drain-context.ts'
import type { OpenInterrupt } from '../state/kernel-state.ts'
import type { ToolDefinition } from '../definitions/tool-definition.ts'
import { callIdOf, findCall, sentArguments, wordsOf } from '../state/calls.ts'
import { findDelegates } from '../governance/delegates.ts'
import { effectiveRisk, failedCall } from '../governance/in-doubt.ts'
import type { GovernedSession, SessionGovernor } from '../governance/session-governor.ts'
import { messageText } from '../state/step-decision.ts'
import { childTools } from '../children/tools.ts'
import {
  checksAnswers,
  type Registry,
  type Relation,
  type ResolvedAgent,
  type ResolvedSide,
} from '../definitions/resolved.ts'
import { isEnabled } from '../thread/env.ts'
import { subpromptTool } from '../model/subprompt.ts'
import type { RunningCall } from './run.ts'

/**
 * Opens the governor of the running session, which judges its calls. It begins a new governed request, or
 * continues the request that the audit log already has.
 */
export function openGovernor(context: GovernedPlace): Promise<SessionGovernor> {
  const { head, state, environment } = context
  const { store, registry } = environment
  const first = state.entries[state.session?.firstEntry ?? 0]
  const query = { store, agents: registry.agents, tree: head.rootId }
  return environment.governors.open({
    ...governedSession(context),
    input: first ? messageText(first) : '',
    delegates: async (request) =>
      checksAnswers(context.agent) && context.state.children.size > 0
        ? findDelegates(query, request)
        : [],
    hasGrants: () => context.state.grants.size > 0,
  })
}

type GovernedPlace = Pick<DrainContext, 'agent' | 'head' | 'state' | 'environment' | 'commit'>

/** Describes the session of a thread for the governor: the running one or, if there is none, the last one. */
export function governedSession(context: GovernedPlace): GovernedSession {
  const { agent, head, state, environment } = context
  const { registry } = environment
  return {
    threadId: head.id,
    rootId: head.rootId,
    tenant: head.tenant,
    owner: head.owner,
    agent,
    sessionId: state.session?.id ?? state.lastSession?.id ?? head.id,
    input: '',
    tools: governedTools(registry, agent),
    callers: state.session?.callers,
    toolsOf: (one) => governedTools(registry, one),
    commit: (writes) => context.commit('undo', { governance: writes }),
  }
}

/** Returns the tools of an agent that a governor judges. */
function governedTools(registry: Registry, agent: ResolvedAgent): readonly ToolDefinition[] {
  const tools = new Map<string, ToolDefinition>()
  for (const side of [agent.a, agent.b])
    for (const tool of side?.prompt.tools ?? [])
      if (tool.kind === 'tool' && tool.tool.run) tools.set(tool.name, tool.tool)
  // A rollback may name a tool that no prompt lists, so all registered tools are added.
  for (const [name, tool] of registry.tools) if (tool.run && !tools.has(name)) tools.set(name, tool)
  return [...tools.values()]
}

/**
 * Asks the governor whether a call may run. If a person was asked before, the answer is read from the log. `call` has
 * the parsed arguments, `sent` is what the model sent.
 */
export async function admitCall(
  context: DrainContext,
  tool: ToolDefinition,
  call: ToolCall,
  sent: JsonObject,
): Promise<{ readonly admission: ToolAdmission; readonly admitted?: AdmittedCall }> {
  const governor = await context.governor()
  const answer = approvalAnswer(context, call.toolCallId)
  const governed = governedCall(context, call, tool.name)
  const other = sentArguments(sent, call.arguments)
  const admission = await governor.admit(other ? { ...governed, sent: other } : governed, answer)
  switch (admission.type) {
    case 'allow': {
      const admitted = admission.call
      // The tool has to run with exactly the arguments that the governor judged. The same JSON keeps the order of its
      // members: the governor's copy has them sorted.
      const judged = admitted.args as JsonObject // the arguments of a call are always an object
      const isSame = sentArguments(judged, call.arguments) === undefined
      return { admission: { type: 'allow', arguments: isSame ? call.arguments : judged }, admitted }
    }
    case 'replay': {
      // The governor has a record of this call already: it was committed together with the outcome of another
      // call, and a crash came before the result of this call was committed. A read can simply run again.
      if (effectiveRisk(tool, call.arguments) === 'read_only')
        return { admission: { type: 'allow' } }
      const reason = 'The call was made before, and its result is in the history.'
      return { admission: { type: 'deny', reason } }
    }
    case 'review': {
      const request = admission.request as unknown as JsonValue // an approval request is JSON
      return { admission: { type: 'defer', request: { kind: 'approval', request } } }
    }
    case 'deny': {
      const reasons = admission.reasons.map(({ code, detail }) =>
        detail === undefined ? code : `${code} (${detail})`,
      )
      const reason = `The call was refused: ${reasons.join(', ')}.`
      return { admission: { type: 'deny', reason } }
    }
  }
}

/**
 * Returns what the governor would answer to a call that is not in the log yet: the same judgement, with a
 * governor whose records are dropped. `state` must be one in which the message already contains the call.
 */
export async function foreseeAdmission(
  place: Pick<DrainContext, 'agent' | 'head' | 'state' | 'environment'>,
  call: Parameters<SessionGovernor['admit']>[0],
): Promise<Admission> {
  const commit = () => Promise.reject(new Error('A preview writes nothing.'))
  return (await openGovernor({ ...place, commit })).admit(call)
}

function governedCall({ state }: DrainContext, call: ToolCall, tool: string) {
  const { toolCallId, arguments: args } = call
  const turnId = state.session?.turn?.id ?? ''
  return { id: callIdOf(state, toolCallId), toolCallId, tool, args, turnId }
}

function approvalAnswer({ state }: DrainContext, toolCallId: string): ApprovalAnswer | undefined {
  const interruptId = findCall(state, toolCallId)?.call.interruptId
  const open = interruptId === undefined ? undefined : state.interrupts.get(interruptId)
  return open && answerToApproval(open)
}

/** Converts a person's answer to the form that the governor of calls reads; undefined when there is no decision. */
export function answerToApproval({
  interrupt,
  answer,
  answeredBy: id,
}: OpenInterrupt): ApprovalAnswer | undefined {
  // The answer to another question, e.g. whether an interrupted call had its effect, approves and denies
  // nothing.
  if (interrupt.kind !== 'approval') return undefined
  const by = id === undefined ? undefined : { type: 'human' as const, id }
  if (answer?.type === 'deny') return { type: 'deny', reason: answer.reason ?? 'denied', by }
  if (answer?.type === 'error') return { type: 'deny', reason: answer.message }
  if (answer?.type !== 'approve') return undefined
  const tokens = [answer.token ?? []].flat().filter((token) => typeof token === 'string')
  return { type: 'approve', tokens }
}

/**
 * Denies a call whose approval was used before, so that its start could not be committed. The governor is
 * opened again from the log and told of the denial; otherwise the call would go on waiting for an approval.
 */
export async function refuseReplayed(context: DrainContext, call: ToolCall): Promise<void> {
  context.dropGovernor()
  await withdrawReview(context, call, { type: 'deny', reason: 'APPROVAL_REPLAYED' })
}

/** Ends the wait for an approval of a call that has failed before the governor could judge it again. */
export async function endReview(context: DrainContext, call: ToolCall, why: string): Promise<void> {
  const governor = await context.governor()
  const governed = governedCall(context, asShown(context, call), call.toolName)
  const { type } = await governor.admit(governed, { type: 'deny', reason: why })
  // The call needs no approval any more, and has not run.
  if (type === 'allow')
    await governor.settle(
      governed.id,
      { type: 'error', reasons: [reason('SCHEMA_INVALID', call.toolName, why)], effect: 'absent' },
      governed.turnId,
    )
}

/** Returns the call with the arguments that the person was shown, by which the governor knows it. */
function asShown({ state }: DrainContext, call: ToolCall): ToolCall {
  const { parsed } = findCall(state, call.toolCallId)?.call ?? {}
  return { ...call, arguments: parsed?.arguments ?? call.arguments }
}

/**
 * Ends the wait for an approval of a call that will not run. A call that needs no approval any more is left
 * alone.
 */
export async function withdrawReview(
  context: DrainContext,
  call: ToolCall,
  denied: Extract<ApprovalAnswer, { type: 'deny' }>,
): Promise<void> {
  const governor = await context.governor()
  const shown = asShown(context, call)
  const { type } = await governor.admit(governedCall(context, shown, call.toolName), denied)
  // The governor has admitted the call, but it will not run, so these records must not be committed.
  if (type === 'allow') context.dropGovernor()
}

/**
 * Records the outcome of an admitted call with the governor: its result as evidence, or what is known about
 * its effect. A result that is not JSON is recorded as a result too, because the tool ran to its end.
 */
export async function settleCall(
  context: DrainContext,
  {
    tool,
    call,
    outcome,
  }: {
    readonly tool: ToolDefinition
    readonly call: AdmittedCall
    readonly outcome: Exclude<SettledOutcome, { readonly type: 'unknown' }>
  },
): Promise<void> {
  const { signal, state } = context
  const turnId = state.session?.turn?.id ?? ''
  const redactor = context.redactor()
  const governor = await context.governor()
  if (outcome.type === 'done' || isResultNotJson(outcome)) {
    const value = outcome.type === 'done' ? (outcome.result as JsonValue) : outcome.message
    const safe = redactor?.json(value) ?? value
    await governor.settle(call.call, { type: 'result', value: safe }, turnId)
    return
  }
  const error = outcome.type === 'error' ? outcome.cause : undefined
  const words = wordsOf(outcome)
  const message = redactor?.text(words) ?? words
  const failed = await failedCall(tool, call, { error, message, signal })
  await governor.settle(call.call, failed, turnId)
}

/** Whether a tool ran to its end and only its result could not be expressed in JSON. */
export function isResultNotJson(
  outcome: SettledOutcome,
): outcome is SettledOutcome & { type: 'error' } {
  return outcome.type === 'error' && outcome.code === 'TOOL_RESULT_NOT_JSON'
}

/** The context that tools get in the runtime: `running` is the call that runs the tool. */
type CallContext = ToolContext & { readonly running: RunningCall }

/**
 * Returns the tools that a side of the conversation may call now: those of its prompt, its subagents, and for
 * side A the tools that run at the client. The tools hold no state of a call, so one list is used for the
 * request and for the calls. Variables can switch subagents on and off, so the list is built again when
 * variables change.
 */
export function toolsOf(context: DrainContext, side: ResolvedSide): readonly Tool[] {
  const tools: Tool[] = []
  const relations: Relation[] = []
  const env = context.env(side)
  for (const one of side.prompt.tools) {
    if (one.kind === 'subagent') {
      const { optional, isHidden } = one.relation
      if (isHidden) continue
      if (optional === undefined || isEnabled(env.get(optional))) relations.push(one.relation)
    } else if (one.kind === 'handoff') {
      const { name, description, agent } = one
      const parameters = { type: 'object', properties: {} } as const
      const run = (): string => `The conversation goes to ${agent}.`
      tools.push({ name, description, parameters, run })
    } else if (one.kind === 'prompt') tools.push(subpromptTool(one))
    else if (!one.tool.run) tools.push(clientTool(one.tool))
    else {
      const { description, parameters, timeoutMs, governance } = one.tool
      const { idempotent, raise } = governance
      // A call of a reading tool whose arguments can raise its risk may be a write.
      const risk = raise ? undefined : governance.risk
      const parser = argumentParserMember(argumentParserOf(one.tool))
      const run = (args: JsonObject, { running, ...context }: CallContext) =>
        running.run(args, context)
      const declared = { name: one.name, description, parameters, risk, idempotent, timeoutMs }
      const tool = { ...parser, ...declared, run }
      tools.push(withToolContext(tool as Tool)) // `Tool` declares the parameters of `run` as `never`
    }
  }
  tools.push(...childTools(context, relations))
  const listed = side.side === 'a' ? context.state.values.get(CLIENT_TOOLS) : undefined
  if (!Array.isArray(listed)) return tools
  // A tool of the prompt overrides a tool of the client with the same name.
  const names = new Set(tools.map(({ name }) => name))
  for (const tool of listed) {
    if (!isPlainObject(tool)) continue
    const { name, description, parameters } = tool
    if (typeof name !== 'string' || typeof description !== 'string' || names.has(name)) continue
    if (isPlainObject(parameters)) tools.push(clientTool({ name, description, parameters }))
  }
  return tools
}

/** The key of the thread value that lists the tools of its client. */
export const CLIENT_TOOLS = 'skein.client_tools'

/** Creates a tool that runs at the client: its calls are deferred until the client sends the result. */
function clientTool(tool: Pick<Tool, 'name' | 'description' | 'parameters'>): Tool {
  const { name, description, parameters } = tool
  return {
    ...argumentParserMember(argumentParserOf(tool)),
    name,
    description,
    parameters,
    run: (args: JsonObject) =>
      defer({ kind: 'input', request: { kind: 'client_tool', toolName: name, arguments: args } }),
  } as Tool // `Tool` declares the parameters of `run` as `never`
}
