import {
  type Clock,
  type IdSource,
  isStandardSchema,
  type JsonSchema,
  type JsonValue,
  messageOf,
  sha256Hex,
  systemClock,
  uuidV4,
} from '@skein/base'
import {
  defer,
  isAssistantMessage,
  isToolResultMessage,
  type Tool,
  tool,
  type ToolDeclaration,
  type ToolSchema,
  type Turn,
} from '@skein/ai'
import { addUsage, deriveTool, zeroUsage } from '@skein/ai/engine'
import { agent as defineAgent } from './agent.ts'
import { flushCheckpoints } from './checkpoint/checkpointer.ts'
import { invalidUse } from './contract/agent-error.ts'
import type {
  Agent,
  AgentInput,
  AgentStreamResult,
  GenerateResult,
  ModellessAgent,
} from './contract/agent-types.ts'
import type { AgentContext, SubagentEnd, SubagentEvent } from './contract/event.ts'
import { unfinishedRun } from './contract/unfinished-run.ts'
import type { InternalRunOptions } from './run/run-agent.ts'
import type { Answers, RunTotals, ToolExecutionTrace } from './state/state-types.ts'
import { AgentState } from './state/state.ts'
import { type ChildRequest, childRequestOf, interruptsOf } from './state/interrupts.ts'
import { RunLedger } from './step/ledger.ts'
import type { SubagentSink } from './step/live-events.ts'
import { type CallerLink, callerOf, type OpenLedger, subagentMark } from './step/run-tree.ts'

/**
 * The definition of a tool that runs an agent. All fields are explicit:
 * none is derived from the agent (UAP §8.1).
 */
export interface SubagentDefinition<Args = Record<string, unknown>> extends Pick<
  Tool,
  'approval' | 'metadata' | 'risk' | 'sequential' | 'dependsOn' | 'timeoutMs'
> {
  readonly name: string
  readonly description: string
  /** JSON Schema, or a Standard Schema, which also validates the arguments. */
  readonly parameters: JsonSchema | ToolSchema<Args>
  /** An agent without a model runs with the model of its caller. */
  readonly agent: Agent | ModellessAgent
  /** Returns the input of the agent. */
  readonly prompt: (args: Args) => AgentInput
  /** Returns the tool's result. Default: the text of the answer. */
  readonly result?: (result: GenerateResult) => unknown
  /** `subagentType` in events and traces. Default: the tool's name. */
  readonly type?: string
  /**
   * Whether the caller's stop condition, which includes the sub-agent's
   * tokens, can end the sub-agent too. Default false.
   */
  readonly sharesBudget?: boolean
  readonly clock?: Clock
  readonly ids?: IdSource
}

/**
 * Makes a tool that runs an agent. The caller's stream contains the sub-agent's events while they happen, and
 * the caller's state contains its trace and tokens. Aborting the caller aborts the sub-agent, and interrupts
 * of the sub-agent become interrupts of the caller.
 *
 *     const explore = subagent({
 *       name: 'explore',
 *       description: 'Explores the code base.',
 *       parameters: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
 *       agent: explorer,
 *       prompt: ({ query }) => `Find: ${query}`,
 *     })
 */
export function subagent<Args = Record<string, unknown>>(
  definition: SubagentDefinition<Args>,
): Tool {
  check(definition)
  const { name, description, parameters, metadata, risk, sequential, dependsOn, timeoutMs } =
    definition
  const subagentTool = tool<Args, unknown, AgentContext>({
    name,
    description,
    parameters: parameters as ToolSchema<Args>, // or JSON Schema; `tool` checks which of the two it is
    metadata,
    risk,
    sequential,
    dependsOn,
    timeoutMs,
    approval: definition.approval as ToolDeclaration<Args, unknown, AgentContext>['approval'], // `Tool` has no argument types
    run: (args, context) => new SubagentRun(definition, context).run(args),
  })
  const { checkpoints, sessionId } = definition.agent
  // A session that the application has named belongs to it, and is not deleted after the call.
  const store = sessionId === undefined ? checkpoints : undefined
  return deriveTool(subagentTool, subagentMark({ store, idOf: childRoot, openLedger }))
}

/** Checks that name, description, parameters, agent and prompt are given (UAP §8.1). */
function check(definition: object): void {
  const { name, description, parameters, agent, prompt } = definition as Record<string, unknown>
  const missing = [
    ...(typeof name === 'string' && name !== '' ? [] : ['name']),
    ...(typeof description === 'string' && description !== '' ? [] : ['description']),
    ...(typeof parameters === 'object' || isStandardSchema(parameters) ? [] : ['parameters']),
    ...(typeof (agent as Partial<Agent> | undefined)?.generate === 'function' ? [] : ['agent']),
    ...(typeof prompt === 'function' ? [] : ['prompt']),
  ]
  if (missing.length === 0) return
  throw invalidUse(
    `subagent() needs ${missing.join(', ')}.`,
    'The interface of a sub-agent is written out; nothing is derived from the agent.',
  )
}

const openLedger: OpenLedger = (run) => new RunLedger(run)

/** An id that is longer than this when encoded is replaced by its hash: file names have at most 255 characters. */
const MAX_LENGTH = 200

/**
 * Returns the id of a sub-agent's run, which is also its session id: the id of the caller's run and the call
 * id, so that it is the same in every attempt. An id that cannot be a file name is replaced by its hash.
 */
function childRoot(root: string, toolCallId: string): string {
  try {
    const id = `${root}/${encodeURIComponent(toolCallId)}`
    if (encodeURIComponent(id).length <= MAX_LENGTH) return id
  } catch {
    // The id contains half of a surrogate pair, which no file name can contain.
  }
  return `sub-${sha256Hex(JSON.stringify([root, toolCallId]))}`
}

type Identity = Pick<SubagentEvent, 'subagentId' | 'subagentType' | 'parentToolCallId'>

/** One call of a tool made by `subagent()`. */
class SubagentRun<Args> {
  readonly #definition: SubagentDefinition<Args>
  readonly #context: AgentContext
  readonly #clock: Clock
  readonly #ids: IdSource
  readonly #caller: CallerLink | undefined
  /** Set if the sub-agent waited for an answer and is resumed. */
  readonly #waiting: ChildRequest | undefined
  readonly #identity: Identity
  readonly #root: string
  /** Where the traces of the sub-agent's own sub-agents are collected. */
  readonly #sinks: SubagentSink[] = []
  #ledger: RunLedger | undefined

  constructor(definition: SubagentDefinition<Args>, context: AgentContext) {
    const { agent } = definition
    const { deferred, toolCallId } = context
    this.#definition = definition
    this.#context = context
    this.#clock = definition.clock ?? agent.clock ?? systemClock
    this.#ids = definition.ids ?? agent.ids ?? uuidV4
    this.#caller = callerOf(context)
    this.#waiting = deferred && childRequestOf(deferred)
    this.#root = childRoot(this.#caller?.root ?? this.#ids(), toolCallId)
    this.#identity = {
      subagentId: this.#waiting?.subagentId ?? this.#ids(),
      subagentType: definition.type ?? definition.name,
      parentToolCallId: toolCallId,
    }
  }

  async run(args: Args): Promise<unknown> {
    const agent = this.#effectiveAgent()
    const before = await this.#stateBefore(agent)
    const promptOrMessage = this.#waiting ? undefined : this.#definition.prompt(args)
    const prompt =
      this.#waiting?.prompt ??
      (typeof promptOrMessage === 'object' ? promptOrMessage.text : (promptOrMessage ?? ''))
    const start = this.#waiting?.startTime ?? before?.messages[0]?.timestamp.getTime()
    const timestamp = start ?? this.#clock.now()
    await this.#emit({ type: 'subagent_start', ...this.#identity, prompt, timestamp })
    let result: GenerateResult
    try {
      result = await this.#runAgent(agent, promptOrMessage ?? '', before)
      // The sub-agent's queued saves and deletions must be done before a caller with a journal records its result.
      await this.#caller?.settle?.(agent.flush())
    } catch (error) {
      const { turn } = error as { turn?: Turn }
      const endedTraces = this.#sinks.flatMap(({ traces }) => traces)
      const children = [...(before?.subagentTraces ?? []), ...endedTraces]
      const facts = { ...record(before, turn), children }
      await this.#end({ success: false, error: messageOf(error), ...facts })
      throw error
    }
    return this.#finish(result, { prompt, startTime: timestamp, before })
  }

  /**
   * Returns the newest known state of the sub-agent's run: the one with which its call was deferred, or the
   * one that its store has, if a process died while the sub-agent ran. Undefined for a new run.
   */
  async #stateBefore(agent: Agent): Promise<AgentState | undefined> {
    const { checkpoints: store, sessionId = this.#root } = agent
    const waiting = this.#waiting?.state
    const { messageId: origin, isResumed } = this.#caller ?? {}
    let newest = waiting
    if (store && isResumed && origin !== undefined) {
      await flushCheckpoints(store, sessionId)
      const savedState = await store.load(sessionId)
      // A call id may be used again, so the message that contains the call must be the same too.
      const isSame = savedState?.run?.origin === origin && savedState.run.id === this.#root
      if (isSame && savedState.run.revision >= (waiting?.run?.revision ?? 0)) newest = savedState
    }
    return newest && AgentState.fromJSON(newest, { ids: this.#ids })
  }

  #runAgent(
    agent: Agent,
    promptOrMessage: AgentInput,
    before: AgentState | undefined,
  ): Promise<GenerateResult> {
    const { streaming } = this.#context
    const options = this.#options(agent)
    if (before) {
      const answers = this.#answersFor(before)
      return streaming
        ? this.#follow(agent.resumeStream(before, answers, options))
        : agent.resume(before, answers, options)
    }
    const state = AgentState.initial({ ids: this.#ids })
    return streaming
      ? this.#follow(agent.stream(promptOrMessage, state, options))
      : agent.generate(promptOrMessage, state, options)
  }

  /** Leaves out answers that an earlier run, whose process died, had already used. */
  #answersFor(before: AgentState): Answers {
    const { answers = {} } = this.#context
    const open = new Set(interruptsOf(before.suspension?.deferred ?? []).map(({ id }) => id))
    return Object.fromEntries(Object.entries(answers).filter(([id]) => open.has(id)))
  }

  /**
   * Returns the agent with its own model, or the model of its caller,
   * which is known only during the call (UAP §8.4).
   */
  #effectiveAgent(): Agent {
    const { agent } = this.#definition
    if (agent.model) return agent as Agent // it has a model, so it is an `Agent`
    const { parentModel: model, parentConfig } = this.#context
    return defineAgent({ ...agent, model, config: agent.config ?? parentConfig })
  }

  #options(agent: Agent): InternalRunOptions {
    const { signal, shouldStop, toolCallId } = this.#context
    const { sharesBudget = false } = this.#definition
    const ledger = this.#caller?.ledgerOf?.(openLedger)
    const parent = ledger && { ledger, toolCallId, sharesBudget }
    return {
      signal,
      parentContext: this.#context,
      passesInterrupts: true,
      // The session id is made from the call, so that a resumed caller finds the session again.
      sessionId: agent.checkpoints && agent.sessionId === undefined ? this.#root : undefined,
      shouldStop: sharesBudget
        ? ({ usage }: RunTotals) => this.#ledger?.isUsedUp() ?? shouldStop(usage)
        : undefined,
      child: {
        root: this.#root,
        origin: this.#caller?.messageId,
        openLedger: (run) => (this.#ledger = new RunLedger(run, parent)),
        onSubagents: (sink) => this.#sinks.push(sink),
      },
    }
  }

  async #follow(stream: AgentStreamResult): Promise<GenerateResult> {
    for await (const innerEvent of stream)
      await this.#emit({ type: 'subagent_event', ...this.#identity, innerEvent })
    return stream.result
  }

  /** Reports the end of the run and returns the result of the call. */
  async #finish(
    result: GenerateResult,
    { prompt, startTime, before }: { prompt: string; startTime: number; before?: AgentState },
  ): Promise<unknown> {
    const { turn, state, interrupts, stopReason } = result
    const facts = { ...record(before, turn), children: state.subagentTraces }
    if (interrupts) {
      const error = 'The sub-agent waits for an answer.'
      await this.#end({ success: false, waits: true, error, ...facts })
      const { subagentType: subagent, subagentId } = this.#identity
      const { sharesBudget = false } = this.#definition
      const request: ChildRequest = {
        subagent,
        prompt,
        subagentId,
        startTime,
        sharesBudget,
        state: state.toJSON(),
        interrupts,
      }
      // All fields are JSON: `toJSON` has checked the state.
      return defer({ kind: 'child', request: request as unknown as JsonValue })
    }
    const { text } = turn.response
    const failure = unfinishedRun(`The sub-agent "${this.#definition.name}"`, stopReason, text)
    if (failure) {
      await this.#end({ success: false, error: failure.message, result: text, ...facts })
      throw failure
    }
    await this.#end({ success: true, result: text, ...facts })
    return this.#definition.result?.(result) ?? text
  }

  async #end(end: Omit<SubagentEnd, 'timestamp' | keyof Identity>): Promise<void> {
    const timestamp = this.#clock.now()
    const told = this.#emit({ type: 'subagent_end', ...this.#identity, ...end, timestamp })
    // The ledger (count of tokens) is closed in the same tick as the event, so that no tokens are counted twice.
    if (!end.waits) this.#ledger?.close()
    await told
  }

  #emit(event: SubagentEvent): void | Promise<void> {
    return this.#context.onSubagentEvent?.(event)
  }
}

/** Returns the calls and tokens of a whole run: those in its state before `resume`, and those of its last turn. */
function record(
  before: AgentState | undefined,
  turn: Turn | undefined,
): Pick<SubagentEnd, 'toolExecutions' | 'usage'> {
  if (!before) return { toolExecutions: turn?.toolExecutions, usage: turn?.usage }
  return {
    toolExecutions: [...executionsOf(before), ...(turn?.toolExecutions ?? [])],
    usage: addUsage(before.run?.usage ?? zeroUsage, turn?.usage ?? zeroUsage),
  }
}

/** Returns the finished calls of a state; how long they took is not known any more. */
function executionsOf({ messages, suspension }: AgentState): ToolExecutionTrace[] {
  const results = [...messages.filter(isToolResultMessage), suspension?.answered].flatMap(
    (message) => message?.results ?? [],
  )
  const known = new Map(results.map((result) => [result.toolCallId, result]))
  return messages.filter(isAssistantMessage).flatMap(({ toolCalls = [] }) =>
    toolCalls.flatMap(({ toolCallId, toolName, arguments: args }) => {
      const { result, isError = false } = known.get(toolCallId) ?? {}
      if (result === undefined) return []
      const text = typeof result === 'string' ? result : JSON.stringify(result)
      return [{ toolName, toolCallId, arguments: args, result: text, isError }]
    }),
  )
}
