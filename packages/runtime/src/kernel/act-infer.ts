import { llm } from '@skein/ai'
import type { ResolvedModel, ResolvedSide } from '../definitions/resolved.ts'
import type { RuntimeEvent } from '../event.ts'
import { compactIfLong } from './act-compact.ts'
import { endSession } from './end-session.ts'
import { askModel, type Prepared } from './ask-model.ts'
import { budgetReason } from './check-budget.ts'
import type { DrainContext } from './drain-context.ts'
import { logRequest } from './log-request.ts'
import { modelMessages } from './model-messages.ts'
import { paramsOf } from './model-options.ts'
import { systemText } from './prompt-text.ts'
import { takeQueue, tellCreated } from './queue.ts'
import { registryNote } from './registry-message.ts'
import { HookBlockedError } from './run-hooks.ts'
import type { Step, Turn } from './state.ts'
import { stepStart } from './step-start.ts'
import { toolsetOf } from './toolset.ts'

/** One step of a side: takes the inbox, asks the model, and commits what it answered. */
export async function infer(context: DrainContext, side: ResolvedSide): Promise<void> {
  const over = await budgetReason(context)
  if (over !== undefined)
    return endSession(context, { outcome: 'failed', reason: 'budget_exceeded', message: over })
  await compactIfLong(context, side)
  const { turn, step: begun } = await beginStep(context, side)
  const model = modelOf(side, begun)
  try {
    const request = await prepare(context, side, model)
    await askModel(context, { side, turn, step: begun, model, ...request })
  } catch (error) {
    if (!(error instanceof HookBlockedError)) throw error
    await endSession(context, { outcome: 'failed', reason: 'blocked', message: error.message })
  }
}

/** Takes what has come meanwhile. A step that was opened with the commit before is not opened again. */
async function beginStep(
  context: DrainContext,
  side: ResolvedSide,
): Promise<{ turn: Turn; step: Step }> {
  const { state, epoch } = context
  const turn = state.session!.turn! // `next` asks for a step within a turn only
  const before = turn.step
  const taken = await takeQueue(context, side)
  const events: RuntimeEvent[] = [...taken, ...registryNote(context)]
  if (before?.epoch === epoch) {
    if (events.length > 0) await context.commit('take_queue', { events })
    await tellCreated(context, side, taken)
    return { turn, step: before }
  }
  if (before) {
    const again = { turnId: turn.id, stepId: before.id, reason: 'again' }
    events.push({ type: 'step_reset', at: context.at(), ...again })
  }
  events.push(stepStart(context, { turnId: turn.id, side: side.side, before }))
  await context.commit('step_start', { events })
  await tellCreated(context, side, taken)
  return { turn: state.session!.turn!, step: state.session!.turn!.step! }
}

/** Each failure goes on to the next fallback; the last one is asked again. */
function modelOf({ prompt }: ResolvedSide, { failures }: Step): ResolvedModel {
  return prompt.models[Math.min(failures, prompt.models.length - 1)]!
}

async function prepare(
  context: DrainContext,
  side: ResolvedSide,
  model: ResolvedModel,
): Promise<Prepared> {
  const { environment, signal } = context
  const system = await systemText(context, side)
  const messages = await modelMessages(context, side)
  const tools = await toolsetOf(context, side)
  const { output, toolChoice } = side.prompt.definition
  const listed = toolChoice === 'none' ? [] : tools.tools
  const params = paramsOf(model, side)
  const instance = llm({
    model: model.model,
    params,
    tools: listed,
    ...(model.definition?.config && { config: model.definition.config }),
    ...(system !== undefined && { system }),
    ...(output && { structure: output }),
    signal,
    clock: environment.clock,
    ids: environment.ids,
  })
  const log = logRequest(context, { side, model, system, tools: listed, params, messages })
  return { instance, messages, tools, log }
}
