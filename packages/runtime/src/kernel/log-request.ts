import { toJsonSchema, type JsonObject } from '@skein/base'
import { UPPError, type Message, type Params, type Tool, type Turn } from '@skein/ai'
import type { ResolvedModel, ResolvedSide } from '../definitions/resolved.ts'
import type { ModelAnswered, ModelRequested, RuntimeEvent, RuntimeMessageAdded } from '../event.ts'
import { deltaOf, frameOf, storedIn } from '../services/model-log.ts'
import type { Blob } from '../store/store.ts'
import type { DrainContext } from './drain-context.ts'
import type { LiveStep } from './live-step.ts'
import { costOf } from './model-options.ts'
import { toUsage } from './usage.ts'

/** A request as it goes into the log: what it shares with the one before is not written again. */
export interface LoggedRequest {
  readonly requested: ModelRequested
  readonly frame: Blob
  readonly startedAt: number
}

export interface RequestFacts {
  readonly side: ResolvedSide
  readonly model: ResolvedModel
  readonly system: string | undefined
  readonly tools: readonly Tool[]
  readonly params: Params
  readonly messages: readonly Message[]
}

export function logRequest(context: DrainContext, facts: RequestFacts): LoggedRequest {
  const { environment, state } = context
  const { side, model, system, params, messages } = facts
  const turn = state.session?.turn
  const tools = facts.tools.map(({ name, description, parameters }) => ({
    name,
    description,
    parameters,
  }))
  const { output } = side.prompt.definition
  const frame = frameOf({
    system: system ?? null,
    tools,
    params: params as JsonObject,
    ...(output && { structure: toJsonSchema(output) as JsonObject }),
  })
  return {
    frame,
    startedAt: environment.clock.now(),
    requested: {
      type: 'model_requested',
      at: context.at(),
      logId: environment.ids(),
      stepId: turn?.step?.id ?? '',
      turnId: turn?.id ?? '',
      attempt: turn?.step?.attempt ?? 1,
      side: side.side,
      prompt: side.prompt.name,
      provider: model.model.provider.name,
      model: model.model.modelId,
      frame: frame.hash,
      ...deltaOf(state.lastLog[side.side], messages, storedIn(state)),
    },
  }
}

interface LogWrites {
  readonly events: readonly RuntimeEvent[]
  readonly blobs: readonly Blob[]
}

export function logAnswer(
  context: DrainContext,
  log: LoggedRequest,
  {
    turn,
    answer,
    live,
  }: { readonly turn: Turn; readonly answer: RuntimeMessageAdded; readonly live: LiveStep },
): LogWrites {
  const { firstTokenMs } = live
  const { costUsd, message } = answer
  return writes(context, log, {
    messageId: message.id,
    ...(costUsd !== undefined && { costUsd }),
    finishReason: turn.stopReason,
    usage: { ...toUsage(turn.usage) } as JsonObject,
    ...(firstTokenMs !== undefined && { firstTokenMs }),
  })
}

export function logFailure(
  context: DrainContext,
  { log, model }: { readonly log: LoggedRequest; readonly model: ResolvedModel },
  error: unknown,
): LogWrites {
  const { code, message } =
    error instanceof UPPError ? error : { code: 'ERROR', message: String(error) }
  const usage = error instanceof UPPError ? error.turn?.usage : undefined
  const costUsd = usage && costOf(model, usage)
  return writes(context, log, {
    error: { code, message },
    ...(usage && { usage: { ...toUsage(usage) } as JsonObject }),
    ...(costUsd !== undefined && { costUsd }),
  })
}

function writes(
  context: DrainContext,
  { requested, frame, startedAt }: LoggedRequest,
  answer: Partial<ModelAnswered>,
): LogWrites {
  const durationMs = context.environment.clock.now() - startedAt
  const { logId } = requested
  const answered: ModelAnswered = {
    type: 'model_answered',
    at: context.at(),
    logId,
    durationMs,
    ...answer,
  }
  return { events: [requested, answered], blobs: [frame] }
}
