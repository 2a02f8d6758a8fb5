import {
  defer,
  type Deferred,
  type Denied,
  deny,
  type Tool,
  type ToolContext,
  withToolContext,
} from '@skein/ai'
import { isPlainObject, type JsonObject, type JsonValue } from '@skein/base'
import type { AdmittedCall, ApprovalAnswer } from '@skein/governance'
import type { Relation, ResolvedSide, ResolvedTool } from '../definitions/resolved.ts'
import type { ToolDefinition } from '../definitions/types.ts'
import { effectiveRisk } from '../governance/probe-tool.ts'
import { isEnabled } from '../thread/env.ts'
import type { FacadeChanges } from '../thread/facade.ts'
import { boundAttachments } from '../session/decide.ts'
import type { DrainContext, Facade } from '../context.ts'
import { findCall } from '../fold/calls.ts'
import type { SpawnPlan } from '../children/spawn.ts'
import { subagentTools } from '../children/tools.ts'
import type { KernelState } from '../state.ts'

/** The tools of one step, and what their runs have to commit with their outcome. */
export interface Toolset {
  readonly tools: readonly Tool[]
  /** What calls changed in the thread, by call id. */
  readonly changes: Map<string, FacadeChanges>
  /** Children that calls create or speak to, by call id. */
  readonly plans: Map<string, SpawnPlan>
  /** Calls that passed the gates and have to be settled there, by call id. */
  readonly admitted: Map<string, AdmittedTool>
}

/** A call that may run, and the tool it runs. */
export interface AdmittedTool {
  readonly tool: ToolDefinition
  readonly call: AdmittedCall
}

/** What a side may call now: optional branches are looked at before every step. */
export async function toolsetOf(context: DrainContext, side: ResolvedSide): Promise<Toolset> {
  const set: Toolset & { tools: Tool[] } = {
    tools: [],
    changes: new Map(),
    plans: new Map(),
    admitted: new Map(),
  }
  const relations: Relation[] = []
  for (const tool of side.prompt.tools) {
    if (tool.kind === 'subagent') relations.push(tool.relation)
    else
      set.tools.push(
        tool.kind === 'handoff' ? handoffTool(tool) : ownTool(context, side, tool, set),
      )
  }
  const env = context.env(side)
  const enabled = relations.filter(
    ({ optional }) => optional === undefined || isEnabled(env.get(optional)),
  )
  set.tools.push(...subagentTools(context, side, enabled, set.plans))
  if (side.side === 'a') set.tools.push(...clientToolsOf(context.state, set.tools))
  return set
}

function handoffTool({
  name,
  agent,
  description,
}: Extract<ResolvedTool, { kind: 'handoff' }>): Tool {
  return {
    name,
    description,
    parameters: { type: 'object', properties: {} },
    run: () => `The conversation goes to ${agent}.`,
  }
}

type OwnTool = Extract<ResolvedTool, { kind: 'tool' }>

function ownTool(context: DrainContext, side: ResolvedSide, resolved: OwnTool, set: Toolset): Tool {
  const { name, tool, config } = resolved
  const { description, parameters, timeoutMs } = tool
  if (!tool.run) return clientTool(tool)
  return withToolContext({
    name,
    description,
    parameters,
    timeoutMs,
    approval: (args: JsonObject, { toolCallId }: ToolContext) =>
      admit(context, set, { tool, args, toolCallId }),
    run: (args: JsonObject, { toolCallId, signal }: ToolContext) => {
      const facade = context.facade(side, { tool, config, signal, toolCallId })
      return runOwn(context, {
        tool,
        side,
        set,
        facade,
        name,
        args,
        toolCallId,
        signal,
        options: config?.options,
      })
    },
  } as Tool) // Tool hides the types of its parameters
}

/** The gate before the call. What a person answered, if one was asked, is in the log. */
async function admit(
  context: DrainContext,
  set: Toolset,
  { tool, args, toolCallId }: { tool: ToolDefinition; args: JsonValue; toolCallId: string },
): Promise<true | Denied | Deferred> {
  const { state } = context
  const turnId = state.session?.turn?.id ?? ''
  const governor = await context.governor()
  const admission = await governor.admit(
    { id: callIdOf(context, toolCallId), toolCallId, tool: tool.name, args, turnId },
    answerOf(context, toolCallId),
  )
  switch (admission.type) {
    case 'allow':
      set.admitted.set(toolCallId, { tool, call: admission.call })
      return true
    case 'replay':
      // Its evidence went with the commit of a neighbour, and then a crash took its result.
      if (effectiveRisk(tool, args) === 'read_only') return true
      return deny('The call was made before, and its result is in the history.')
    case 'review':
      return defer({ kind: 'approval', request: admission.request as unknown as JsonValue })
    case 'deny':
      return deny(
        `The call was refused: ${admission.reasons.map(({ code, detail }) => (detail === undefined ? code : `${code} (${detail})`)).join(', ')}.`,
      )
  }
}

/** Unique in the session also when a vendor uses a call id twice. */
export function callIdOf({ state }: DrainContext, toolCallId: string): string {
  const entry = findCall(state, toolCallId)?.entry
  return entry ? `${entry.message.id}:${toolCallId}` : toolCallId
}

function answerOf({ state }: DrainContext, toolCallId: string): ApprovalAnswer | undefined {
  const interruptId = findCall(state, toolCallId)?.call.interruptId
  const open = interruptId === undefined ? undefined : state.interrupts.get(interruptId)
  const answer = open?.answer
  const by =
    open?.answeredBy === undefined ? {} : { by: { type: 'human' as const, id: open.answeredBy } }
  if (answer?.type === 'deny') return { type: 'deny', reason: answer.reason ?? 'denied', ...by }
  if (answer?.type === 'error') return { type: 'deny', reason: answer.message }
  if (answer?.type !== 'approve') return undefined
  const tokens = [answer.token ?? []].flat().filter((token) => typeof token === 'string')
  return { type: 'approve', tokens }
}

interface OwnRun {
  readonly tool: ToolDefinition
  readonly side: ResolvedSide
  readonly set: Toolset
  readonly facade: Facade
  readonly name: string
  readonly args: JsonObject
  readonly toolCallId: string
  readonly signal: AbortSignal
  readonly options: JsonObject | undefined
}

async function runOwn(context: DrainContext, run: OwnRun): Promise<unknown> {
  const { tool, side, set, facade, name, args, toolCallId, signal, options } = run
  const admitted = set.admitted.get(toolCallId)?.call
  const idempotencyKey = admitted?.idempotency_key ?? callIdOf(context, toolCallId)
  try {
    // What was judged is what runs.
    const result = await tool.run!(admitted?.args ?? args, {
      state: facade.state,
      signal,
      toolCallId,
      toolName: name,
      idempotencyKey,
      options,
    })
    checkAttachments(side, facade, { name, args })
    return result
  } finally {
    // Also those that the tool has just set: it may tell them in its result or its error.
    context.hide(facade.secrets())
    set.changes.set(toolCallId, facade.takeChanges())
  }
}

/** A lifecycle tool that names a file which is not there has failed: the session does not end. */
function checkAttachments(
  side: ResolvedSide,
  { state }: Facade,
  { name, args }: { readonly name: string; readonly args: JsonObject },
): void {
  for (const binding of [side.sessionStop, side.sessionFail]) {
    if (binding?.name !== name) continue
    const call = { toolCallId: '', toolName: name, arguments: args }
    for (const path of boundAttachments({ call }, binding))
      if (!state.statFile(path)) throw new Error(`There is no file ${path} in this thread.`)
  }
}

/** The value of a thread that lists tools of its client, beside those of the prompt. */
export const CLIENT_TOOLS = 'skein.client_tools'

/** A tool that runs at the client: its calls wait for their result. */
function clientTool({
  name,
  description,
  parameters,
}: Pick<Tool, 'name' | 'description' | 'parameters'>): Tool {
  return {
    name,
    description,
    parameters,
    run: (args: JsonObject) =>
      defer({ kind: 'input', request: { kind: 'client_tool', toolName: name, arguments: args } }),
  } as Tool // Tool hides the types of its parameters
}

/** Tools that the client of this thread has brought along; a name of the prompt's own comes first. */
function clientToolsOf({ values }: KernelState, taken: readonly Tool[]): readonly Tool[] {
  const listed = values.get(CLIENT_TOOLS)
  if (!Array.isArray(listed)) return []
  const names = new Set(taken.map(({ name }) => name))
  return listed.flatMap((tool) =>
    isDeclared(tool) && !names.has(tool.name) ? [clientTool(tool)] : [],
  )
}

function isDeclared(
  tool: JsonValue,
): tool is JsonObject & Pick<Tool, 'name' | 'description' | 'parameters'> {
  return (
    isPlainObject(tool) &&
    typeof tool['name'] === 'string' &&
    typeof tool['description'] === 'string' &&
    isPlainObject(tool['parameters'])
  )
}
