import { type Effect, describeEffect } from './effect.ts'

/**
 * What became of an effect. `same`: as often as without a crash. `doubled`: more often. `lost`: less often. `held`: less
 * often, and the program says that it waits for a person. `changed`: once with another body, instead of the original.
 */
export type EffectVerdict = 'same' | 'doubled' | 'lost' | 'held' | 'changed'

/** One effect at one crash point. */
export interface ComparedEffect {
  /** The effect as text. */
  readonly effect: string
  /** How often it happens without a crash; 0 for one that only happens after a crash. */
  readonly expected: number
  /** How often it happened. */
  readonly times: number
  /** How many further requests repeated an idempotency key, and so count as one with the first. */
  readonly repeats: number
  readonly verdict: EffectVerdict
}

/**
 * Compares what happened around a crash with what happens without one. Effects are the same if their action and their body
 * are. What is left over of one action was changed; what is then still left over was doubled or lost.
 */
export function compareEffects(
  baseline: readonly Effect[],
  observed: readonly Effect[],
  { isHeld = false }: { readonly isHeld?: boolean } = {},
): ComparedEffect[] {
  const expected = countEffects(baseline)
  const counts = countEffects(observed)
  const names = [...new Set([...expected.keys(), ...counts.keys()])]
  const rows = names.map((effect) => {
    const before = expected.get(effect)
    const after = counts.get(effect)
    return {
      effect,
      action: (before ?? after)!.action,
      expected: before?.times ?? 0,
      times: after?.times ?? 0,
      repeats: after?.repeats ?? 0,
    }
  })
  return rows.map(({ action, ...row }) => {
    const verdict = verdictOf(
      row,
      rows.filter((other) => other.action === action),
    )
    return { ...row, verdict: verdict === 'lost' && isHeld ? 'held' : verdict }
  })
}

type Counted = Pick<ComparedEffect, 'expected' | 'times'>

function verdictOf(row: Counted, group: readonly Counted[]): EffectVerdict {
  const { expected, times } = row
  if (times === expected) return 'same'
  const sum = (name: keyof Counted): number => group.reduce((total, one) => total + one[name], 0)
  const excess = sum('times') - sum('expected')
  if (expected > 0 && times > expected) return 'doubled'
  // Of a body that only came after the crash, as many replace another one as others are missing.
  if (expected === 0) return excess > 0 ? 'doubled' : 'changed'
  return excess < 0 ? 'lost' : 'changed'
}

interface Count {
  readonly action: string
  times: number
  repeats: number
}

/** Counts effects by their text. */
function countEffects(effects: readonly Effect[]): Map<string, Count> {
  const counts = new Map<string, Count>()
  const keys = new Set<string>()
  for (const effect of effects) {
    const text = describeEffect(effect)
    const count = counts.get(text) ?? { action: effect.action, times: 0, repeats: 0 }
    counts.set(text, count)
    const key = effect.idempotencyKey === undefined ? undefined : `${effect.idempotencyKey} ${text}`
    if (key !== undefined && keys.has(key)) count.repeats += 1
    else count.times += 1
    if (key !== undefined) keys.add(key)
  }
  return counts
}
