import { efforts as scale, type Effort } from '../contract/accepted-settings.ts'
import type { Settings } from '../contract/provider.ts'
import type { SettingNote } from './wire.ts'

type Reasoning = NonNullable<Settings['reasoning']>

/** Tokens of thinking for each level, within the range of every model with a budget. */
const budgets = { low: 1024, medium: 8192, high: 24_576 } as const

/** Returns the word that a setting asks for; a number of tokens becomes the level whose budget is nearest. */
function effortOf(reasoning: Reasoning): Effort {
  if (reasoning === 'off') return 'none'
  if (typeof reasoning === 'string') return reasoning
  if (reasoning.budget === 0) return 'none'
  return reasoning.budget < 4096 ? 'low' : reasoning.budget < 16_384 ? 'medium' : 'high'
}

/** What is sent for `reasoning`, and a note if that is not what was asked. */
export interface Chosen<Value> {
  readonly value?: Value
  readonly notes: readonly SettingNote[]
}

/** Returns the note that a model has no setting for how much to think. */
export function noReasoning(modelId: string): readonly SettingNote[] {
  const reason = `${modelId} has no setting for how much to think; it was not sent.`
  return [{ setting: 'reasoning', change: 'dropped', reason }]
}

/**
 * Chooses the word that is nearest to the setting among those that a model accepts. Thinking is never switched
 * off for a setting that asks for some.
 */
export function chooseEffort(
  reasoning: Reasoning,
  accepted: readonly Effort[],
  modelId: string,
): Chosen<Effort> {
  const level = effortOf(reasoning)
  const rank = scale.indexOf(level)
  const usable = level === 'none' ? accepted : accepted.filter((effort) => effort !== 'none')
  // Of two words at the same distance the one that thinks more is taken.
  const [nearest] = usable.toSorted(
    (a, b) =>
      Math.abs(scale.indexOf(a) - rank) - Math.abs(scale.indexOf(b) - rank) ||
      scale.indexOf(b) - scale.indexOf(a),
  )
  if (nearest === undefined) return { notes: noReasoning(modelId) }
  if (nearest === level && typeof reasoning === 'string') return { value: nearest, notes: [] }
  const choices = accepted.join(', ')
  const reason = `${modelId} accepts ${choices}; "${nearest}" was sent.`
  return { value: nearest, notes: [{ setting: 'reasoning', change: 'adjusted', reason }] }
}

/**
 * Chooses the number of tokens for a model that has a budget for its thinking; 0 switches thinking off. `limit`
 * is the largest number that the rest of the request allows.
 */
export function chooseBudget(
  reasoning: Reasoning,
  {
    min,
    max,
    canStop,
    limit = Infinity,
    modelId,
  }: {
    readonly min: number
    readonly max: number
    readonly canStop: boolean
    readonly limit?: number
    readonly modelId: string
  },
): Chosen<number> {
  const tokens =
    typeof reasoning === 'object' ? reasoning.budget : reasoning === 'off' ? 0 : budgets[reasoning]
  // A level is not to use up the whole output limit: a fifth of it is left for the answer.
  const room = typeof reasoning === 'object' ? limit : Math.max(min, Math.floor(limit * 0.8))
  const most = Math.min(max, limit, room)
  if (tokens === 0 && canStop) return { value: 0, notes: [] }
  if (tokens < 0) return { value: tokens, notes: [] } // -1: Gemini decides
  if (most < min) {
    const reason = `${modelId} thinks with at least ${min} tokens, which the output limit does not leave; it was not sent.`
    return { notes: [{ setting: 'reasoning', change: 'dropped', reason }] }
  }
  const value = Math.min(Math.max(tokens, min), most)
  if (value === tokens || (typeof reasoning === 'string' && tokens !== 0 && value === most))
    return { value, notes: [] }
  const reason = `${modelId} thinks with ${min} to ${most} tokens; ${value} were sent.`
  return { value, notes: [{ setting: 'reasoning', change: 'adjusted', reason }] }
}
