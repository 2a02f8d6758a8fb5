import {
  argumentParserOf,
  isPlainObject,
  type JsonObject,
  messageOf,
  type RecordedArguments,
} from '@skein/base'
import type { Risk } from '@skein/governance'
import { CLIENT_TOOLS } from './calls/tool-list.ts'
import {
  type CallState,
  type KernelState,
  openCalls,
  type OpenInterrupt,
  type PendingVariables,
  sideOf,
} from './state/kernel-state.ts'
import { upcastingStore } from './store/upcast.ts'
import type { Registry, ResolvedAgent, ResolvedSide } from './definitions/resolved.ts'
import type { ToolDefinition } from './definitions/tool-definition.ts'
import { sentArguments } from './state/calls.ts'
import { catchUpFold, KernelFold } from './state/fold.ts'
import { effectiveRisk } from './governance/in-doubt.ts'
import { needsAgent } from './loop/next.ts'
import { missingHere } from './recovery/missing-agent.ts'
import type { Store } from './store/store.ts'
import type { ThreadHead, ThreadLifecycle } from './store/head.ts'

/** Something that a thread relies on and the new definitions lack; `docs/decisions/0019` says what happens then. */
export interface Stranded {
  readonly threadId: string
  readonly agent: string
  readonly problem:
    | 'agent_gone'
    | 'agent_changed'
    | 'side_gone'
    | 'tool_gone'
    | 'arguments_refused'
    | 'approval_void'
    | 'effect_gone'
    | 'child_gone'
    | 'log_unreadable'
  /** What is missing or changed: an agent, tool, effect or side (`a`, `b`). */
  readonly subject: string
  /** What happens to the thread, in a sentence. */
  readonly message: string
}

/** Which threads of a store rely on something that a set of definitions lacks. */
export interface StrandedReport {
  /** At most `maxFindings`. */
  readonly findings: readonly Stranded[]
  /** The number of all findings, including those left out of `findings`. */
  readonly count: number
  /** The number of threads whose logs were read. */
  readonly threads: number
  /** The number of threads whose logs were not read, because there are more than `maxThreads`. */
  readonly unread: number
  /** The number of sessions that would continue with other definitions than those with which they began. */
  readonly changed: number
  /** For each removed agent, how many of its threads have no work. They wait for the agent once they get a message. */
  readonly idle: Readonly<Record<string, number>>
}

/** The order in which threads are read: those with work first, so that `maxThreads` leaves out the others. */
const LIFECYCLES: readonly ThreadLifecycle[] = [
  ...(['running', 'stopping', 'waiting', 'queued'] as const),
  ...(['idle', 'stopped', 'failed'] as const),
]

const PAGE = 1_000

/**
 * Says which threads of a store could not go on if a process with these definitions took over the store. Reads the log
 * of every thread that has not ended, and compares what the thread relies on with the definitions. Writes nothing.
 *
 *     const store = readSqliteStore('.skein/skein.db')
 *     const { findings } = await findStranded(await discover('./next'), store)
 */
export async function findStranded(
  registry: Registry,
  store: Pick<Store, 'list' | 'events'>,
  options: {
    /** Whether sessions go on only with the definitions with which they began (`session`). Default `none`. */
    readonly pin?: 'none' | 'session'
    /** Default 10,000. */
    readonly maxThreads?: number
    /** Default 1,000. */
    readonly maxFindings?: number
  } = {},
): Promise<StrandedReport> {
  const { pin = 'none', maxThreads = 10_000, maxFindings = 1_000 } = options
  const logs = upcastingStore({ events: store.events.bind(store) })
  const findings: Stranded[] = []
  const idle: Record<string, number> = {}
  let [count, threads, unread, changed] = [0, 0, 0, 0]
  for await (const head of headsOf(store)) {
    if (threads >= maxThreads) {
      unread++
      continue
    }
    threads++
    const { found, isIdle, isChanged } = await strandedIn(head, { registry, pin, logs })
    count += found.length
    findings.push(...found.slice(0, maxFindings - findings.length))
    if (isIdle) idle[head.agent] = (idle[head.agent] ?? 0) + 1
    if (isChanged) changed++
  }
  return { findings, count, threads, unread, changed, idle }
}

async function* headsOf(store: Pick<Store, 'list'>): AsyncGenerator<ThreadHead> {
  for (const lifecycle of LIFECYCLES)
    for (let offset = 0; ; offset += PAGE) {
      // Sorted by age, oldest first, so that threads created during the search do not shift the pages.
      const page = await store.list({ lifecycle, sort: 'oldest', limit: PAGE, offset })
      yield* page
      if (page.length < PAGE) break
    }
}

interface Given {
  readonly registry: Registry
  readonly pin: 'none' | 'session'
  readonly logs: Pick<Store, 'events'>
}

interface Judged {
  readonly found: readonly Stranded[]
  /** Whether the thread's agent is gone, but the thread has no work. */
  readonly isIdle?: boolean
  readonly isChanged?: boolean
}

async function strandedIn(head: ThreadHead, given: Given): Promise<Judged> {
  const finding = (problem: Stranded['problem'], subject: string, message: string): Stranded => {
    return { threadId: head.id, agent: head.agent, problem, subject, message }
  }
  const fold = new KernelFold()
  try {
    await catchUpFold(fold, given.logs, { threadId: head.id, logId: head.logId })
  } catch (error) {
    return { found: [finding('log_unreadable', head.agent, messageOf(error))] }
  }
  const { state } = fold
  const missing = missingHere(state, given)
  if (missing) {
    if (!hasWork(state, head)) return { found: [], isIdle: true }
    const problem = missing.code === 'AGENT_NOT_FOUND' ? 'agent_gone' : 'agent_changed'
    return { found: [finding(problem, state.agent, missing.text)] }
  }
  const agent = given.registry.agent(state.agent)
  const place = { state, agent, registry: given.registry, finding }
  const calls = await Promise.all(openCalls(state).map((call) => strandedCall(place, call)))
  const { definitions } = state.session ?? {}
  return {
    found: [...sideGone(place), ...calls.flat(), ...effectsOf(place), ...childrenOf(place)],
    isChanged: definitions !== undefined && definitions !== agent.hash,
  }
}

/** Whether the thread has work to do, or waits for something, for which its agent is needed. */
function hasWork(state: KernelState, { wakeAt }: ThreadHead): boolean {
  const isNew = !state.session && !state.lastSession && state.queue.length === 0
  if (openRequests(state).length > 0) return true
  // The time is infinite here, so that work which is planned for later counts too.
  if (!needsAgent(state, { epoch: Number.NaN, now: Infinity })) return false
  return !isNew || state.effects.size > 0 || wakeAt !== null
}

function openRequests({ variables }: KernelState): readonly PendingVariables[] {
  return [...variables.values()].filter((one) => !one.reference && one.error === undefined)
}

interface Place {
  readonly state: KernelState
  readonly agent: ResolvedAgent
  readonly registry: Registry
  readonly finding: (problem: Stranded['problem'], subject: string, message: string) => Stranded
}

function sideGone({ state, agent, finding }: Place): Stranded[] {
  if (state.session?.turn?.side !== 'b' || agent.b) return []
  const message = `Side B is in its turn, but "${agent.name}" has no side B any more; side A continues the turn.`
  return [finding('side_gone', 'b', message)]
}

/** Checks a call without an outcome. If it waits for a child or a client, it never runs again: its tool may change. */
async function strandedCall(place: Place, one: CallState): Promise<Stranded[]> {
  const { call, interruptId } = one
  const { state, agent, finding, registry } = place
  const { toolName } = call
  const open = interruptId === undefined ? undefined : state.interrupts.get(interruptId)
  const { kind = 'none', request } = open?.interrupt ?? {}
  if (kind === 'child') {
    const { reference } = request as { readonly reference?: unknown }
    const name = state.children.get(String(reference))?.created.name
    if (name === undefined || registry.agents.has(name)) return []
    return [finding('child_gone', name, `Waits for a child of the agent "${name}", which is gone.`)]
  }
  if (kind === 'input' || kind === 'timer') return []
  const turn = state.session!.turn! // open calls belong to the running turn
  const side = sideOf(agent, turn)
  const definition = side.prompt.tools.find(({ name }) => name === toolName)
  if (definition?.kind === 'tool' && definition.tool.run)
    return strandedTool(place, definition.tool, one, open)
  if (definition ?? isOwnTool(state, side, toolName)) return []
  const message = `The call ${call.toolCallId} of "${toolName}" is open, and the tool is gone: the call fails.`
  return [finding('tool_gone', toolName, message)]
}

/** Whether a tool of this name is provided by the runtime or by the client of the thread, not by the definitions. */
function isOwnTool({ values }: KernelState, { prompt, side }: ResolvedSide, name: string): boolean {
  if (name === 'subagent_list') return prompt.tools.some(({ kind }) => kind === 'subagent')
  const isLifecycle = name === 'subagent_create' || name === 'subagent_message'
  if (isLifecycle)
    return prompt.tools.some((tool) => tool.kind === 'subagent' && tool.relation.isResumable)
  const clientTools = side === 'a' ? values.get(CLIENT_TOOLS) : undefined
  return (
    Array.isArray(clientTools) &&
    clientTools.some((one) => isPlainObject(one) && one['name'] === name)
  )
}

async function strandedTool(
  { finding }: Place,
  tool: ToolDefinition,
  { call: { toolCallId, toolName, arguments: sent }, parsed }: CallState,
  open: OpenInterrupt | undefined,
): Promise<Stranded[]> {
  const problems: Stranded[] = []
  const what = `The call ${toolCallId} of "${toolName}"`
  const { args, issue } = await readArguments(tool, sent, parsed)
  if (issue !== undefined) {
    const message = `${what} is open, and the tool does not accept its arguments any more: ${issue}`
    problems.push(finding('arguments_refused', toolName, message))
  }
  // Arguments that cannot be parsed go back to the model, and no person is asked about the call again.
  if (!args) return problems
  const risk = effectiveRisk(tool, args)
  if (isVoid(open, risk)) {
    const message = `${what} was shown to a person as ${askedRisk(open)} and is ${risk} now: the approval does not count.`
    problems.push(finding('approval_void', toolName, message))
  } else if (isOfOther(open, args)) {
    const message = `${what} was shown to a person with other arguments than the tool makes of it now: the approval does not count.`
    problems.push(finding('approval_void', toolName, message))
  }
  return problems
}

/**
 * Returns the arguments with which the call would run, and why the tool does not accept them; no issue if it accepts
 * them, or has no way to check them.
 */
async function readArguments(
  tool: ToolDefinition,
  sent: JsonObject,
  parsed: RecordedArguments | undefined,
): Promise<{ readonly args?: JsonObject; readonly issue?: string }> {
  const parser = argumentParserOf(tool)
  if (!parser) return { args: sent, issue: await schemaIssue(tool, sent) }
  if (parsed?.schema === parser.schema) return { args: parsed.arguments }
  try {
    return { args: await parser.parse(sent) }
  } catch (error) {
    return { issue: messageOf(error) }
  }
}

async function schemaIssue(tool: ToolDefinition, args: unknown): Promise<string | undefined> {
  const { findIssues } = await import('@skein/ai/json-schema')
  try {
    const [issue] = findIssues(tool.parameters, args)
    return issue && `${issue.pointer} ${issue.message}`.trim()
  } catch {
    return undefined // the schema has keywords that cannot be checked here
  }
}

/** Whether an approval no longer counts, as the risk of its call has changed since. Reads need no approval. */
function isVoid(open: OpenInterrupt | undefined, risk: Risk): boolean {
  const declaredRisk = askedRisk(open)
  return declaredRisk !== undefined && declaredRisk !== risk && risk !== 'read_only'
}

/** Whether a person was asked about other arguments, because the definition of the tool has changed since. */
function isOfOther(open: OpenInterrupt | undefined, args: JsonObject): boolean {
  if (open?.interrupt.kind !== 'approval') return false
  const { action } = (open.interrupt.request ?? {}) as {
    readonly action?: { readonly args?: JsonObject }
  }
  return action?.args !== undefined && sentArguments(action.args, args) !== undefined
}

function askedRisk(open: OpenInterrupt | undefined): string | undefined {
  if (open?.interrupt.kind !== 'approval') return undefined
  const { action } = (open.interrupt.request ?? {}) as {
    readonly action?: { readonly risk?: string }
  }
  return action?.risk
}

function effectsOf({ state, agent, registry, finding }: Place): Stranded[] {
  return [...state.effects.values()].flatMap(({ scheduled: { name, effectId }, interruptId }) => {
    const definition = registry.effects.get(name)
    if (!definition) {
      const message = `The effect ${effectId} is scheduled, and "${name}" is gone: it fails when it is due.`
      return [finding('effect_gone', name, message)]
    }
    // The policy decides about effects with a risk, and about all if the agent has a `taskClass`.
    const isJudged = definition.risk !== undefined || agent.definition.taskClass !== undefined
    const { risk = 'write_low_risk' } = definition
    const open = interruptId === undefined ? undefined : state.interrupts.get(interruptId)
    if (!isJudged || !isVoid(open, risk)) return []
    const message = `The effect ${effectId} was shown to a person as ${askedRisk(open)} and is ${risk} now: the approval does not count.`
    return [finding('approval_void', name, message)]
  })
}

/** Checks children that wait for variables before they are created: their relation to the parent must still exist. */
function childrenOf({ state, agent, finding }: Place): Stranded[] {
  const tools = [agent.a, agent.b].flatMap((side) => side?.prompt.tools ?? [])
  const keys = new Set(
    tools.flatMap((tool) => (tool.kind === 'subagent' ? [tool.relation.key] : [])),
  )
  return openRequests(state).flatMap(({ requested: { relation } }) => {
    if (keys.has(relation)) return []
    const message = `A child "${relation}" waits for variables, but it is no subagent of "${agent.name}" any more: it is not created.`
    return [finding('child_gone', relation, message)]
  })
}
