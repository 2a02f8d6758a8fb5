import type { JsonSchema } from '@skein/base'
import type { GovernedTool } from '../contract/governed.ts'
import { GovernanceError } from '../contract/reason.ts'
import { callThrough, type CallingRun } from './call-through.ts'

/** A UPP tool (`@skein/ai`) that calls through a governed run. */
export interface UppTool {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
  readonly run: (params: unknown, context: { readonly toolCallId?: string } | undefined) => unknown
}

/**
 * A run's tools for `llm()` and agents. A call that waits for a person ends the turn with the call
 * open; every other refusal is told to the model.
 *
 *     const turn = await llm({ model, tools: uppTools(run, task.tools) }).generate(question)
 */
export function uppTools(run: CallingRun, tools: readonly GovernedTool[]): UppTool[] {
  return tools.map((tool) => ({
    name: tool.name,
    description: tool.description,
    parameters: tool.parameters,
    // Two declared parameters: this is how a UPP tool asks for the context.
    run: async (params, context) => {
      try {
        return await callThrough(run, tool, params, context?.toolCallId)
      } catch (error) {
        if (!(error instanceof GovernanceError) || error.code !== 'APPROVAL_REQUIRED') throw error
        return deferred({ kind: 'approval', request: error.reasons[0]?.detail ?? tool.name })
      }
    },
  }))
}

/** What `defer()` of `@skein/ai` makes, without importing it. */
function deferred(request: { kind: 'approval'; request: string }): object {
  return Object.freeze({ ...request, [Symbol.for('skein.deferred')]: true })
}
