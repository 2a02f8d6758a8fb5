import { isPlainObject, type JsonSchema, type JsonValue } from '@skein/base'
import { GovernanceError } from '../contract/reason.ts'
import { CallGate, type GateCall, type GovernOptions, type Tiered } from './gate.ts'

/** The part of a structured tool of LangChain that is used here. */
interface LangChainOwnTool {
  readonly name: string
  readonly description: string
}

/** The arguments of a tool of LangChain. */
type LangChainInput<Tool> = Tool extends {
  func: (input: infer Input, ...rest: never) => unknown
}
  ? Input
  : never

/** The answer that a graph is resumed with, for one call. */
export interface CallAnswer {
  /** The `id` of the approval request that the interrupt carried. */
  readonly id: string
  readonly approved: boolean
  readonly reason?: string
}

interface ToolConfig {
  readonly toolCall?: { readonly id?: string }
  readonly toolCallId?: string
  readonly configurable?: unknown
}

type Call = (args: unknown, runManager?: unknown, config?: ToolConfig) => Promise<unknown>

/**
 * Governs tools of LangChain. It takes the tools that an application has, each with its risk, and returns
 * them for `createAgent`, `createReactAgent` or a `ToolNode`. A call that must wait for a person interrupts
 * the graph with its approval request; the graph needs a checkpointer. Resume it, in any process, with the
 * answers:
 *
 *     new Command({ resume: [{ id, approved: true }] })
 *
 * A checkpoint proves nothing. So a call runs only if this function asked about it before, with the same
 * arguments, and each approval has one effect however often the checkpoint is resumed.
 */
export function governLangChain<const Tools extends readonly LangChainOwnTool[]>(
  options: GovernOptions & {
    readonly tools: {
      readonly [Index in keyof Tools]: Tiered<Tools[Index], LangChainInput<Tools[Index]>>
    }
    /** The function `interrupt` of `@langchain/langgraph`. */
    readonly interrupt: (value: never) => unknown
  },
): Tools[number][] {
  const tiered: readonly Tiered<LangChainOwnTool, never>[] = options.tools
  const gate = new CallGate(
    tiered.map(({ tool, ...governance }) => ({
      name: tool.name,
      description: tool.description,
      parameters: {} as JsonSchema,
      governance,
    })),
    options,
  )
  const interrupt = options.interrupt as (value: unknown) => unknown
  const busy = new BusyNodes()
  return tiered.map(({ tool }) => governTool({ gate, busy, interrupt }, tool))
}

interface Governing {
  readonly gate: CallGate
  readonly busy: BusyNodes
  readonly interrupt: (value: unknown) => unknown
}

/**
 * The calls in progress, by node of a graph. A node runs the calls of a message at the same time and ends as
 * soon as one of them interrupts; the others would continue unseen, while the graph is resumed and makes them
 * again. So a call interrupts only when the other calls of its node have ended or wait too.
 */
class BusyNodes {
  readonly #counts = new Map<string, number>()
  readonly #waiting = new Map<string, (() => void)[]>()

  begin(node: string): void {
    this.#counts.set(node, (this.#counts.get(node) ?? 0) + 1)
  }

  end(node: string): void {
    const callsLeft = (this.#counts.get(node) ?? 1) - 1
    if (callsLeft > 0) return void this.#counts.set(node, callsLeft)
    this.#counts.delete(node)
    const waiting = this.#waiting.get(node) ?? []
    this.#waiting.delete(node)
    for (const release of waiting) release()
  }

  /** Resolves when no call of the node is in progress, apart from the caller's own call. */
  async rest(node: string): Promise<void> {
    const rested = new Promise<void>((release) =>
      this.#waiting.set(node, [...(this.#waiting.get(node) ?? []), release]),
    )
    // Waits one macrotask, because all calls of one message begin within the same macrotask.
    await new Promise((resolve) => setTimeout(resolve, 0))
    this.end(node)
    await rested
    this.begin(node)
  }
}

/** The node in which a call is made: its thread, and its place in the graph. */
function nodeOf(config: ToolConfig | undefined): string {
  const { thread_id, checkpoint_ns } = (config?.configurable ?? {}) as Readonly<
    Record<string, unknown>
  >
  return JSON.stringify([thread_id, checkpoint_ns])
}

function governTool<Tool extends LangChainOwnTool>(governing: Governing, tool: Tool): Tool {
  const { gate, busy } = governing
  const own = tool as unknown as { readonly _call: Call }
  gate.setAlone(tool.name, async (args) => (await own._call(args)) as JsonValue)
  const _call: Call = async (args, runManager, config) => {
    const id = config?.toolCall?.id ?? config?.toolCallId ?? ''
    const call: GateCall = { id, tool: tool.name, args, context: config?.configurable }
    const node = nodeOf(config)
    busy.begin(node)
    try {
      const answer = await answerTo(governing, call, node)
      if (answer?.approved === false)
        return await gate.refuse(call, answer.reason ?? 'the person refused')
      return await gate.perform(
        call,
        async (checked) => (await own._call(checked, runManager, config)) as JsonValue,
      )
    } catch (error) {
      // A refusal is the tool's answer: the model reads it, and the graph continues.
      if (error instanceof GovernanceError) return `Error: ${error.message}`
      throw error
    } finally {
      busy.end(node)
    }
  }
  // A tool of the same class and with the same members, but with a governed `_call`.
  const copy = Object.create(Object.getPrototypeOf(tool) as object) as object
  return Object.assign(copy, tool, { _call }) as Tool
}

/** Returns the person's answer to a call that has to wait; interrupts the graph until there is one. */
async function answerTo(
  { gate, busy, interrupt }: Governing,
  call: GateCall,
  node: string,
): Promise<CallAnswer | undefined> {
  // A resume value that was given before the approval request existed is no answer to it.
  const wasAsked = await gate.wasAsked(call)
  if (wasAsked && (await gate.hasEnded(call))) return undefined
  const request = await gate.ask(call)
  if (!request) return undefined
  for (;;) {
    // `interrupt` throws until the graph was resumed. Calls of one node share its answers, which arrive in no
    // particular order, so each call looks for its own answer. An answer to an approval request that has
    // expired has another id and does not count.
    let answers: unknown
    try {
      answers = interrupt(request)
    } catch (pause) {
      await busy.rest(node)
      throw pause
    }
    const answer = [answers]
      .flat()
      .find(
        (one): one is CallAnswer =>
          isPlainObject(one) && one['id'] === request.id && typeof one['approved'] === 'boolean',
      )
    if (answer)
      return wasAsked ? answer : { ...answer, approved: false, reason: 'no one was asked' }
  }
}
