import { llm, NoRetry } from '@skein/ai'
import { toJsonSchema } from '@skein/base'
import type { DrainContext } from '../context/drain-context.ts'
import type { ResolvedModel, ResolvedSide } from '../definitions/resolved.ts'
import type { PreparedRequest } from './asking.ts'
import { logRequest } from './log.ts'
import { withMedia } from './media.ts'
import { haveMedia } from './media-in-messages.ts'
import { paramsOf } from './params.ts'
import { withoutVendorState } from './vendor-state.ts'
import { systemText, hookedSystem } from './system-text.ts'
import { modelMessages, hookedMessages } from './request-messages.ts'
import type { StrategyRequest } from './asking.ts'

/** Builds the request and its record for the log. */
export async function prepareRequest(
  context: DrainContext,
  {
    side,
    model,
    asked,
  }: {
    readonly side: ResolvedSide
    readonly model: ResolvedModel
    readonly asked: StrategyRequest | undefined
  },
): Promise<PreparedRequest> {
  const { environment, signal } = context
  const { clock, ids } = environment
  const { maxMessageBytes, maxToolCalls } = environment.limits
  const { request } = asked ?? {}
  const system = request
    ? await hookedSystem(context, side, request.system ?? '')
    : await systemText(context, side)
  const messages = request
    ? await hookedMessages(context, side, request.messages)
    : await modelMessages(context, side)
  const { output, toolChoice } = side.prompt.definition
  const tools = request?.tools ?? (toolChoice === 'none' ? [] : context.tools(side))
  const { params, middleware } = withoutVendorState(
    model.model,
    request?.params ?? (await paramsOf(model, side)),
  )
  const structure = request ? request.structure : output && toJsonSchema(output)
  const { config } = model.definition ?? {}
  const instance = llm({
    model: model.model,
    params,
    tools,
    // The model call itself does not retry. The runtime does, because it can wait for long without holding
    // the thread (see `modelFailed`). A retry strategy that the user configured is used in addition.
    config: {
      maxMessageBytes,
      maxToolCalls,
      ...config,
      retryStrategy: config?.retryStrategy ?? new NoRetry(),
    },
    system,
    structure,
    // The spending limits wrap the request last, so that an answer from a cache of other middleware costs nothing.
    middleware: [
      middleware,
      context.trace?.middleware() ?? [],
      side.agent?.llmMiddleware ?? [],
      environment.spending?.middleware(context.head, side, model) ?? [],
    ].flat(),
    signal,
    clock,
    ids,
  })
  const { logged, sent } = haveMedia(context.state, messages)
    ? await withMedia(context, { side, model, messages })
    : { logged: messages, sent: messages }
  const facts = { side, model, system, tools, params, messages: logged, structure }
  return { instance, messages: sent, log: logRequest(context, facts) }
}
