import {
  isMessage,
  isUserMessage,
  llm,
  type LLMInstance,
  type Message,
  messageFromJSON,
  type ToolUseStrategy,
  UserMessage,
} from '@skein/ai'
import { LLM_OPTIONS } from '@skein/ai/engine'
import { type Clock, type IdSource, uuidV4 } from '@skein/base'
import { flushCheckpoints } from '../checkpoint/checkpointer.ts'
import { invalidUse } from '../contract/agent-error.ts'
import type { Agent, AgentInput, ModellessOptions } from '../contract/agent-types.ts'
import type { Interrupt } from '../state/state-types.ts'
import type { AgentState } from '../state/state.ts'
import { boundHooks } from '../strategies/hooks.ts'

/** The internals of an agent: its options, and its model, which is created on first use. */
export class AgentCore {
  readonly options: ModellessOptions
  readonly ids: IdSource
  readonly clock: Clock | undefined
  /** The public agent; strategies and middleware get this same object. */
  agent!: Agent
  #llm: LLMInstance | undefined
  /** Saves and deletions of sub-agents that nothing has awaited yet. */
  readonly #pending = new Set<Promise<void>>()

  constructor(options: ModellessOptions) {
    this.options = options
    this.ids = options.ids ?? uuidV4
    this.clock = options.clock
  }

  /** The agent's model. Created on first use, because an agent may be defined without a model. */
  get llm(): LLMInstance {
    if (this.#llm) return this.#llm
    const { model, llmMiddleware: middleware } = this.options
    if (!model)
      throw invalidUse(
        'This agent has no model.',
        'Pass `model` to agent(), or run it as a sub-agent: subagent() gives it the model of its caller.',
      )
    const { tools, toolStrategy = unlimited } = this.agent
    const own = Object.entries(this.options).filter(([name]) => LLM_OPTIONS.known.includes(name))
    this.#llm = llm({ ...Object.fromEntries(own), model, tools, toolStrategy, middleware })
    return this.#llm
  }

  /** Makes `flush` wait for saves or deletions, which never reject. */
  addPending(work: Promise<void>): void {
    this.#pending.add(work)
    void work.then(() => this.#pending.delete(work))
  }

  /** Waits until all queued checkpoints are saved and all sessions that are over are deleted. */
  async flush(): Promise<void> {
    const { checkpoints } = this.options
    if (checkpoints) await flushCheckpoints(checkpoints)
    await Promise.all(this.#pending)
  }

  /** Converts the input of a run to a message. */
  toInput(input: AgentInput | undefined): Message {
    const { ids, clock } = this
    if (typeof input === 'string') return new UserMessage(input, { ids, clock })
    if (isMessage(input)) return 'text' in input ? input : messageFromJSON(input)
    throw invalidUse('An agent’s input is a text or a message.')
  }

  /**
   * Returns the input of a resumed run: the last user message that no strategy added, or an empty message.
   */
  resumedInput({ messages }: AgentState): Message {
    const { ids, clock } = this
    const question = messages.findLast(
      (message) => isUserMessage(message) && message.metadata?.['uap']?.['synthetic'] !== true,
    )
    return question ?? new UserMessage('', { ids, clock })
  }

  /**
   * Returns the session id of a run: from the options, else from the state, else, with a checkpoint store, a
   * new id (UAP §3.4). An id made once for the agent would give all conversations that begin with a fresh state
   * one checkpoint, so that each would overwrite the others.
   */
  sessionOf(state: Partial<AgentState> | undefined): string | undefined {
    const { sessionId, checkpoints } = this.options
    if (sessionId !== undefined) return sessionId
    const storedId = state?.metadata?.['sessionId'] // a middleware may have left something that is no state
    if (typeof storedId === 'string' && storedId !== '') return storedId
    return checkpoints && this.ids()
  }
}

const unlimited: ToolUseStrategy = Object.freeze({ maxIterations: Infinity })

const toolHooks = [
  'onToolCall',
  'onBeforeCall',
  'onAfterCall',
  'onError',
  'onMaxIterations',
] as const satisfies readonly (keyof ToolUseStrategy)[]

/** Returns a tool strategy without a limit of iterations, unless the given one sets a limit (UAP §2.4). */
export function withoutLimit(strategy: ToolUseStrategy): ToolUseStrategy {
  if (strategy.maxIterations !== undefined) return strategy
  return boundHooks(strategy, toolHooks, { maxIterations: Infinity })
}

/** Creates the error for interrupts that can never be answered, because the state of their run is dropped. */
export function unansweredInterrupts(interrupts: readonly Interrupt[]): Error {
  const ids = interrupts.map(({ id }) => id).join(', ')
  return invalidUse(
    `A call of this run waits for an answer (${ids}), but the state to resume from is dropped here.`,
    'Use generate() and resume(); inside a tool, run the agent with subagent().',
  )
}
