import type { JsonSchema } from '@skein/base'
import type { GovernedTool } from '../contract/governed.ts'
import { GovernanceError } from '../contract/reason.ts'
import {
  callThrough,
  type CallingRun,
  recordAnswer,
  type RecordingRun,
  recordStream,
} from './call-through.ts'

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
 * Use it with `uppModel`, which records answers: after a wait for a person, the run goes on with the recorded
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

/** The part of a model of `@skein/ai` that is used here. */
interface UppModel {
  readonly modelId: string
  readonly provider: UppProvider
}

/** The part of a provider that is used here. */
interface UppProvider {
  readonly name: string
  readonly handlers: {
    readonly llm?: { readonly bind: (model: never) => UppBoundModel }
  }
}

/** The part of a bound model that is used here: the events of one message, whole or as a stream. */
interface UppBoundModel {
  readonly complete: (request: never) => Promise<readonly { readonly type: string }[]>
  readonly stream: (request: never) => AsyncIterable<readonly { readonly type: string }[]>
}

/**
 * A model whose answers are recorded in the run. When the run's function is executed again, after an approval
 * or a crash, `llm()` gets the recorded answers with the same call ids, and the model is asked only for what
 * comes after them.
 */
export function uppModel<Model extends UppModel>(run: RecordingRun, model: Model): Model {
  const { provider } = model
  const { llm } = provider.handlers
  if (!llm) return model
  const bind = (reference: never): UppBoundModel => {
    const bound = llm.bind(reference)
    const name = `${provider.name}/${model.modelId}`
    return {
      ...bound,
      complete: (request) => recordAnswer(run, name, () => bound.complete(request)),
      // `llm()` makes the calls of a message when it gets `message_stop`, so the message is recorded before
      // that.
      stream: (request) =>
        recordStream(
          run,
          name,
          () => bound.stream(request),
          (batch) => batch.some(({ type }) => type === 'message_stop'),
        ),
    }
  }
  const handlers = { ...provider.handlers, llm: { ...llm, bind } }
  // A provider is a function with fixed members, so a new one is made around it.
  const call = provider as unknown as (...args: unknown[]) => unknown
  const recorded = Object.defineProperties((...args: unknown[]) => call(...args), {
    name: { value: provider.name, enumerable: true },
    handlers: { value: handlers, enumerable: true },
  }) as unknown as UppProvider
  return { ...model, provider: recorded }
}
