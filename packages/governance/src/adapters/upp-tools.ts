import type { JsonSchema } from '@skein/base'
import type { GovernedTool } from '../contract/governed.ts'
import { GovernanceError } from '../contract/reason.ts'
import { callThrough, type CallingRun } from './call-through.ts'

/** A UPP tool (`@skein/ai`) that makes its calls through a governed run. */
export interface UppTool {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
  readonly run: (params: unknown, context: { readonly toolCallId?: string } | undefined) => unknown
}

/**
 * Converts a run's tools for `llm()` and agents. `llm()` still controls the order, concurrency and events
 * of calls; each tool's `run` makes a governed call. A call that waits for a person is deferred and ends
 * the turn; any other refusal is an error that the model reads.
 *
 *     const tools = uppTools(run, task.tools)
 *     const turn = await llm({ model: uppModel(run, model), tools }).generate(question)
 *
 * Use it with `uppModel`, which records answers: after a wait for a person, the run continues with the recorded
 * calls.
 */
export function uppTools(run: CallingRun, tools: readonly GovernedTool[]): UppTool[] {
  return tools.map((tool) => ({
    name: tool.name,
    description: tool.description,
    parameters: tool.parameters,
    // The function must declare two parameters, because UPP passes the context only to such tools.
    run: async (params, context) => {
      try {
        return await callThrough(run, tool, params, context?.toolCallId)
      } catch (error) {
        if (!(error instanceof GovernanceError) || error.code !== 'APPROVAL_REQUIRED') throw error
        // The same object that `defer()` of `@skein/ai` returns, built here to avoid the import.
        const request = error.reasons[0]?.detail ?? tool.name
        return Object.freeze({ kind: 'approval', request, [Symbol.for('skein.deferred')]: true })
      }
    },
  }))
}
