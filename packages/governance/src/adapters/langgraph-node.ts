import type { JsonValue } from '@skein/base'
import type { ApprovalRequest } from '../contract/approval.ts'
import { uuidOf } from '../contract/envelope.ts'
import type { TaskClass } from '../contract/governed.ts'
import type { Governor } from '../governor.ts'
import type { Delivered, FailedSafe, Init, Result, Run } from '../contract/run.ts'

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
