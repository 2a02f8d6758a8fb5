import type { JsonValue } from '@skein/base'
import type { ApprovalRequest } from '../contract/approval.ts'
import { uuidOf } from '../contract/envelope.ts'
import type { GovernedTool, TaskClass } from '../contract/governed.ts'
import type { Governor } from '../governor.ts'
import type { Delivered, FailedSafe, Init, Result, Run } from '../contract/run.ts'
import {
  type CallingRun,
  callThrough,
  overlay,
  recordAnswer,
  type RecordingRun,
} from './call-through.ts'

/** The function `tool` of `@langchain/core/tools`, as far as it is used here. */
type MakeLangChainTool<Tool> = (
  run: (input: unknown, config?: LangChainConfig) => Promise<string>,
  fields: { name: string; description: string; schema: Record<string, unknown> },
) => Tool

interface LangChainConfig {
  readonly toolCall?: { readonly id?: string }
  readonly toolCallId?: string
}

/**
 * Converts a run's tools for a `ToolNode` or an agent of LangGraph.
 *
 *     import { tool } from '@langchain/core/tools'
 *     new ToolNode(langGraphTools(run, task.tools, { tool }))
 */
export function langGraphTools<Tool>(
  run: CallingRun,
  tools: readonly GovernedTool[],
  langChain: { readonly tool: MakeLangChainTool<Tool> },
): Tool[] {
  return tools.map((tool) =>
    langChain.tool(
      async (input, config) => {
        const id = config?.toolCall?.id ?? config?.toolCallId
        const result = await callThrough(run, tool, input, id)
        return typeof result === 'string' ? result : JSON.stringify(result)
      },
      {
        name: tool.name,
        description: tool.description,
        schema: { ...(tool.parameters as object) },
      },
    ),
  )
}

/** The part of a chat model or another runnable of LangChain that is used here. */
interface LangChainModel {
  readonly invoke: (input: never, options?: never) => Promise<unknown>
}

/** The class `AIMessage` of `@langchain/core/messages`. */
type AiMessageClass = new (fields: never) => object

/**
 * A chat model of LangChain whose answers are recorded in the run. When the run's function is executed again,
 * after an approval or a crash, the graph gets the recorded messages with the same call ids, and the model is
 * asked only for what comes after them. While a call waits for a person, the model is not asked at all, which
 * ends the graph's run. A stream of the model yields the whole message at once.
 *
 *     import { AIMessage } from '@langchain/core/messages'
 *     const agent = createAgent({ model: langChainModel(run, model, { AIMessage }), tools })
 */
export function langChainModel<Model extends LangChainModel>(
  run: RecordingRun,
  model: Model,
  langChain: { readonly AIMessage: AiMessageClass },
): Model {
  const invoke = async (input: never, options?: never): Promise<unknown> => {
    const { message, value } = await recordAnswer(run, 'model', async () => {
      const answer = await model.invoke(input, options)
      return isMessage(answer) ? { message: fieldsOf(answer) } : { value: answer }
    })
    return message ? new langChain.AIMessage(message as never) : value
  }
  async function* stream(input: never, options?: never): AsyncGenerator<unknown, void> {
    yield await invoke(input, options)
  }
  async function* transform(
    inputs: AsyncIterable<never>,
    options?: never,
  ): AsyncGenerator<unknown, void> {
    for await (const input of inputs) yield await invoke(input, options)
  }
  // These methods return a model with other settings, whose answers are recorded too.
  const derive =
    (name: string) =>
    (...args: unknown[]): unknown => {
      const bound = (model as unknown as Record<string, (...given: unknown[]) => LangChainModel>)[
        name
      ]?.(...args)
      return bound && langChainModel(run, bound, langChain)
    }
  const has = (name: string): boolean => typeof Reflect.get(model, name) === 'function'
  const deriving = ['bindTools', 'withConfig', 'withStructuredOutput'].filter(has)
  return overlay(model, {
    invoke,
    stream: async (input: never, options?: never) => stream(input, options),
    transform,
    ...Object.fromEntries(deriving.map((name) => [name, derive(name)])),
  })
}

function isMessage(value: unknown): value is Record<string, unknown> {
  return typeof (value as { readonly getType?: unknown } | null)?.getType === 'function'
}

/** Returns what `new AIMessage` needs to build the same message again. */
function fieldsOf(message: Record<string, unknown>): Record<string, unknown> {
  const names = ['id', 'name', 'content', 'tool_calls', 'invalid_tool_calls', 'usage_metadata']
  const fields = [...names, 'additional_kwargs', 'response_metadata'].map((name) => [
    name,
    message[name],
  ])
  return Object.fromEntries(fields) as Record<string, unknown>
}

/** Options of `governedNode`. */
interface GovernedNodeOptions<State, Value extends JsonValue, Update> {
  readonly governor: Governor
  readonly task: TaskClass
  /**
   * The function `interrupt` of `@langchain/langgraph`. It gets the approval requests and returns tokens.
   */
  readonly interrupt: (waiting: readonly ApprovalRequest[]) => unknown
  readonly init: (state: State) => Omit<Init, 'request_id'>
  readonly body: (run: Run, state: State) => Promise<Value>
  /** Returns the update of the graph's state when the request has ended. */
  readonly update: (result: Delivered<Value> | FailedSafe, state: State) => Update
}

/** The second argument of a node, after the state. */
interface NodeConfig {
  readonly configurable?: Readonly<Record<string, unknown>>
}

/**
 * Creates a node that runs as one governed request. LangGraph runs a node from its beginning each time it
 * is resumed. The request id is derived from the node's position in its thread, so every run of the node
 * finds the same journal, and no completed call is made again. Resume the node with one or several
 * approval tokens; without a token it keeps waiting.
 */
export function governedNode<State, Value extends JsonValue, Update>(
  options: GovernedNodeOptions<State, Value, Update>,
): (state: State, config: NodeConfig) => Promise<Update> {
  const { governor, task, interrupt } = options
  return async (state, config) => {
    const request_id = requestIdOf(config)
    const body = (run: Run): Promise<Value> => options.body(run, state)
    let result: Result<Value> =
      (await governor.state(request_id)) === undefined
        ? await governor.run(task, { ...options.init(state), request_id }, body)
        : await governor.resume(request_id, task, body)
    while (result.outcome === 'pending') {
      // Only a string can be a token; after any other answer the request keeps waiting.
      const answers = [interrupt(result.waiting)].flat()
      const tokens = answers.filter((answer): answer is string => typeof answer === 'string')
      result = await governor.resume(request_id, task, body, { tokens })
    }
    return options.update(result, state)
  }
}

/**
 * Derives the request id: the same each time a node is resumed at one checkpoint, but different when the
 * graph visits the node again.
 */
function requestIdOf({ configurable = {} }: NodeConfig): string {
  const { thread_id, checkpoint_ns } = configurable
  return uuidOf(`langgraph\n${String(thread_id)}\n${String(checkpoint_ns)}`)
}
