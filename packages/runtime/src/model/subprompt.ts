import {
  ExponentialBackoff,
  llm,
  type Message,
  type Tool,
  type ToolContext,
  type Turn,
  UPPError,
  UserMessage,
  withToolContext,
} from '@skein/ai'
import { type JsonObject, linkAbort, toJsonSchema } from '@skein/base'
import { argumentsOf, checked, messageIn, pathsOf } from '../children/tools.ts'
import type { DrainContext } from '../context/drain-context.ts'
import { RuntimeError, spendingLimitOf } from '../contract/error.ts'
import { costOf } from '../contract/usage.ts'
import { overBudget } from './over-budget.ts'
import type { ResolvedModel, ResolvedSide, Subprompt } from '../definitions/resolved.ts'
import { findCall } from '../state/calls.ts'
import { TimeLimit } from './time-limit.ts'
import { hookedMessages } from './request-messages.ts'
import { systemText } from './system-text.ts'
import { paramsOf } from './params.ts'
import { withoutVendorState } from './vendor-state.ts'
import { logAnswer, logFailure, logRequest, type LogWrites } from './log.ts'
import { viewOf } from './view.ts'
import { findFiles } from '../thread/copied-files.ts'

/** A tool call that asks the model of another prompt. The records of its requests are committed with its outcome. */
interface AskingCall {
  readonly drain: DrainContext
  readonly side: ResolvedSide
  readonly requests: LogWrites[]
}

type AskingContext = ToolContext & { readonly running: AskingCall }

/**
 * Creates the tool for a prompt that is used as a tool: each call sends one request to the model of that prompt. The
 * request has no side effects, so after a crash the call sends it again, unless the log has the outcome already.
 */
export function subpromptTool(subprompt: Subprompt): Tool {
  const { name, description, prompt, config } = subprompt
  const tool = {
    name,
    description,
    parameters: argumentsOf(prompt.definition, config),
    run: (args: JsonObject, context: AskingContext) => ask(subprompt, args, context),
  }
  return withToolContext(tool as Tool) // `Tool` declares the parameters of `run` as `never`
}

async function ask(
  { name, prompt, config }: Subprompt,
  args: JsonObject,
  { running, toolCallId, signal }: AskingContext,
): Promise<unknown> {
  const { drain } = running
  const over = await overBudget(drain)
  if (over !== undefined) throw notAsked(name, { code: 'BUDGET_EXCEEDED', message: over })
  // The hooks of the calling prompt are for the messages of its conversation, so none of them runs for this request.
  const side: ResolvedSide = { ...running.side, prompt, agent: undefined, hooks: [] }
  const messages = await messagesOf(drain, { side, name, config, args, toolCallId })
  const system = await systemText(drain, side)
  let failure: unknown
  for (const model of prompt.models) {
    const log = await logged(drain, { side, model, system, messages, toolCallId })
    try {
      const turn = await infer(drain, { side, model, system, messages, signal })
      running.requests.push(logAnswer(drain, log, { turn, costUsd: costOf(model, turn.usage) }))
      const result = await resultOf(name, side, turn)
      return config.includeTextResponse === false ? 'It was answered.' : result
    } catch (error) {
      if (signal?.aborted) throw error
      const limit = spendingLimitOf(error)
      if (limit) {
        failure = notAsked(name, limit)
        break // the limit holds for every model
      }
      if (error instanceof UPPError) running.requests.push(logFailure(drain, { log, model }, error))
      failure = error
    }
  }
  if (config.includeErrors === false) throw new Error(`"${name}" could not be asked.`)
  throw failure
}

function notAsked(
  name: string,
  { code, message }: Pick<RuntimeError, 'code' | 'message'>,
): RuntimeError {
  return new RuntimeError(`The prompt "${name}" was not asked: ${message}`, { code })
}

/** Returns the messages of the request: the conversation if the prompt wants it, and the arguments. */
async function messagesOf(
  drain: DrainContext,
  {
    side,
    name,
    config,
    args,
    toolCallId,
  }: Pick<Subprompt, 'name' | 'config'> & {
    readonly side: ResolvedSide
    readonly args: JsonObject
    readonly toolCallId: string
  },
): Promise<readonly Message[]> {
  const { definition } = side.prompt
  const valid = await checked(definition, name, args)
  const { initUserMessageProperty: from, initAttachmentsProperty: attached } = config
  const paths = attached === undefined ? [] : pathsOf(valid[attached])
  const files = findFiles(drain, paths).map(({ path }) => path)
  const text = messageIn(valid, from, name) ?? JSON.stringify(valid)
  const all = files.length === 0 ? text : `${text}\n\nAttached files:\n${files.join('\n')}`
  const { environment, state } = drain
  const timestamp = new Date(environment.clock.now())
  const message = new UserMessage(all, { id: environment.ids(), timestamp })
  if (definition.includeChat !== true) return hookedMessages(drain, side, [message])
  // The message with this call is left out, because its calls have no results yet and vendors would refuse it.
  const place = state.places.get(findCall(state, toolCallId)?.entry.message.id ?? '')
  return hookedMessages(drain, side, [...viewOf(state, side.side, side.prompt, place), message])
}

interface Request {
  readonly side: ResolvedSide
  readonly model: ResolvedModel
  readonly system: string | undefined
  readonly messages: readonly Message[]
}

async function logged(drain: DrainContext, request: Request & { readonly toolCallId: string }) {
  const { side, model } = request
  const structure = structureOf(side)
  const params = await paramsOf(model, side)
  return logRequest(drain, { ...request, tools: [], params, structure })
}

function structureOf({ prompt }: ResolvedSide) {
  const { output } = prompt.definition
  return output && toJsonSchema(output)
}

/**
 * Sends the request. The thread waits for it as for any tool, so retries happen inside this call and are not logged;
 * the time limits hold for all of them together.
 */
async function infer(
  drain: DrainContext,
  { side, model, system, messages, signal }: Request & { readonly signal?: AbortSignal },
): Promise<Turn> {
  const { clock, ids, limits, spending } = drain.environment
  const { maxMessageBytes, modelAttempts, modelBackoffMs } = limits
  const { config } = model.definition ?? {}
  const retries = { maxRetries: modelAttempts - 1, baseDelay: modelBackoffMs }
  const { params, middleware } = withoutVendorState(model.model, await paramsOf(model, side))
  const instance = llm({
    model: model.model,
    params,
    system,
    structure: structureOf(side),
    config: {
      maxMessageBytes,
      ...config,
      retryStrategy: config?.retryStrategy ?? new ExponentialBackoff(retries),
    },
    middleware: [
      middleware,
      drain.trace?.middleware() ?? [],
      spending?.middleware(drain.head, side, model) ?? [],
    ].flat(),
    clock,
    ids,
  })
  const controller = new AbortController()
  const unlink = linkAbort([signal], controller)
  const timeLimit = new TimeLimit(drain.environment, controller)
  try {
    const events = instance.infer(messages, { signal: controller.signal })
    let batch = await events.next()
    for (; !batch.done; batch = await events.next()) timeLimit.moved()
    return batch.value
  } catch (error) {
    throw timeLimit.reached(model, error) ?? error
  } finally {
    timeLimit.end()
    unlink()
  }
}

/** Returns the text of the answer or, if the prompt has an `output` schema, the data, which must match that schema. */
async function resultOf(name: string, { prompt }: ResolvedSide, turn: Turn): Promise<unknown> {
  const { output } = prompt.definition
  if (!output) return turn.response.text
  const validation = await output['~standard'].validate(turn.data)
  if (!validation.issues) return validation.value
  const [first] = validation.issues
  throw new Error(`The answer of "${name}" does not fit its schema: ${first?.message ?? ''}`)
}
