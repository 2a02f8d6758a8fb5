import type { DrainContext } from '../context/drain-context.ts'
import { modelNamed, type ResolvedSide } from '../definitions/resolved.ts'
import { reportAnswer } from '../hooks/hooks.ts'
import { HookBlockedError } from '../hooks/run-hook.ts'
import { HookAnswerError } from '../hooks/read-answer.ts'
import { endSession } from '../session/end-session.ts'
import { type ChosenRun, chosenRun } from '../state/chosen-run.ts'
import { overBudget } from './over-budget.ts'
import { askModel } from './ask.ts'
import { compactIfLong } from './compact.ts'
import { answerByHandler } from './answer-by-handler.ts'
import { makeCall } from './make-call.ts'
import { beginStep } from './begin-step.ts'
import { prepareRequest } from './prepare-request.ts'
import type { StrategyRequest } from './asking.ts'

/**
 * Runs one step of a side of the conversation: takes queued messages, asks the model, commits the answer.
 * `asked` is set for an `agent()`: the request of its strategy; it takes queued messages only after its turn.
 */
export async function infer(
  context: DrainContext,
  side: ResolvedSide,
  asked?: StrategyRequest,
): Promise<void> {
  const over = await overBudget(context)
  if (over !== undefined)
    return endSession(context, { outcome: 'failed', reason: 'budget_exceeded', message: over })
  if (!asked && !side.handler) await compactIfLong(context, side)
  const begin = await beginStep(context, side)
  if (!begin) return // messages came, so `next` decides again
  const { turn, step } = begin
  if (side.handler) return answerByHandler(context, side, begin)
  const choice = side.side === 'a' ? chosenRun(context.state) : undefined
  if (choice?.call && !asked) return makeCall(context, side, begin, choice)
  const answering = choice ? chosenSide(context, side, choice) : side
  if (!answering) {
    const message = `The model "${choice?.model}" cannot be asked here.`
    const hint =
      'It is no longer defined, or it has no price and the thread has a budget in US dollars.'
    return endSession(context, { outcome: 'failed', reason: 'model_unknown', message, hint })
  }
  const { models } = answering.prompt
  // After each failure the next fallback model is asked; if the last model fails, the last model is asked again.
  const model = models[Math.min(step.failures, models.length - 1)]!
  try {
    const request = await prepareRequest(context, { side: answering, model, asked })
    await askModel(context, { side: answering, turn, step, model, asked, ...request })
  } catch (error) {
    const { message } = error as Error // both errors that are handled here are errors
    if (error instanceof HookAnswerError) {
      await reportAnswer(context, error)
      return endSession(context, { outcome: 'failed', reason: 'hook_answer', message })
    }
    if (!(error instanceof HookBlockedError)) throw error
    await endSession(context, { outcome: 'failed', reason: 'blocked', message })
  }
}

/**
 * Returns the side of the conversation with the model and settings that a user's message chose. Returns undefined
 * if that model no longer exists, or if its price is unknown and the thread has a budget in US dollars.
 */
function chosenSide(
  { environment, state, agent }: DrainContext,
  side: ResolvedSide,
  { model: name, settings }: ChosenRun,
): ResolvedSide | undefined {
  const { prompt } = side
  const model = name === undefined ? undefined : modelNamed(environment.registry, name)
  const budget = state.budget ?? agent.definition.budget
  const hasCost = (budget?.maxCostUsd ?? budget?.tree?.maxCostUsd) !== undefined
  if (name !== undefined && (!model || (hasCost && !model.price))) return undefined
  const { definition } = prompt
  const providerOptions = { ...definition.providerOptions, ...settings }
  const models = model ? [model] : prompt.models
  return { ...side, prompt: { ...prompt, models, definition: { ...definition, providerOptions } } }
}
