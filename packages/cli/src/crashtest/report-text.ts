import { textTable } from '../terminal/table.ts'
import { type CrashtestResult, hasFailed, type PointResult } from './crashtest.ts'
import { pointName, shortened } from './point-name.ts'
import type { ComparedEffect, EffectVerdict } from './compare-effects.ts'

/** How many crash points a line of the table names. */
const MAX_NAMED = 3

/** Formats the table of effects: how often each happened, and at which crash points. */
export function effectTable({ points }: CrashtestResult): string[] {
  const effects = [...new Set(points.flatMap((point) => point.effects.map(({ effect }) => effect)))]
  return textTable([
    ['effect', 'expected', 'happened', '', 'crash points'],
    ...effects.flatMap((effect) => effectRows(effect, points)),
  ])
}

interface Outcome {
  readonly compared: ComparedEffect
  readonly points: readonly PointResult[]
}

function effectRows(effect: string, points: readonly PointResult[]): string[][] {
  const compared = points.map((point) => ({
    point,
    compared: point.effects.find((one) => one.effect === effect),
  }))
  const outcomes = new Map<string, { compared: ComparedEffect; points: PointResult[] }>()
  for (const { point, compared: one } of compared) {
    if (!one) continue // an effect that other crash points have in addition
    const key = `${one.verdict} ${one.times}`
    const outcome = outcomes.get(key) ?? { compared: one, points: [] }
    outcomes.set(key, outcome)
    outcome.points.push(point)
  }
  const order: readonly EffectVerdict[] = ['same', 'held', 'changed', 'lost', 'doubled']
  const sorted: Outcome[] = [...outcomes.values()].toSorted(
    (a, b) => order.indexOf(a.compared.verdict) - order.indexOf(b.compared.verdict),
  )
  return sorted.map(({ compared: one, points: at }, index) => [
    index === 0 ? shortened(effect) : '',
    index === 0 ? String(one.expected) : '',
    String(one.times),
    one.verdict,
    one.verdict === 'same' ? `${at.length} of ${points.length}` : namedPoints(at),
  ])
}

function namedPoints(points: readonly PointResult[]): string {
  const names = points.slice(0, MAX_NAMED).map(pointName)
  const rest = points.length - names.length
  return `${points.length}: ${names.join('; ')}${rest > 0 ? `; ${rest} more` : ''}`
}

/** What else a person must know to judge the result. */
export function remarks({ steps, available, points, unseen }: CrashtestResult): string[] {
  const unreached = points.filter(({ isReached }) => !isReached)
  const unstable = points.filter((point) => point.isReached && !point.isStable)
  const stuck = points.filter(({ ending }) => ending === 'failed' || ending === 'timed_out')
  const held = points.filter(({ ending }) => ending === 'held')
  const repeats = points.flatMap(({ effects }) => effects).filter((one) => one.repeats > 0)
  return [
    available > points.length &&
      `${points.length} of ${available} crash points were tried; --max-points tries more, --seed others.`,
    held.length > 0 &&
      `${countOf(held.length, 'crash point')}: the program waits for a person afterwards.`,
    repeats.length > 0 &&
      `${countOf(repeats.length, 'time')} a request was repeated with the same idempotency key, which counts as one.`,
    ...stuck.map(
      (point) =>
        `${pointName(point)}: the program ${point.ending === 'timed_out' ? 'did not end' : `ended with exit code ${point.exitCode}`} after ${countOf(point.starts, 'start')}.`,
    ),
    unreached.length > 0 &&
      `${countOf(unreached.length, 'crash point')} was not reached, because the program took other steps than without a crash: ${namedPoints(unreached)}.`,
    unstable.length > 0 &&
      `Before ${countOf(unstable.length, 'crash')} the program took other steps than without one: its results may differ between runs.`,
    unseen.length > 0 &&
      `Requests that passed the recorder, so they are not counted: ${unseen.join(', ')}.`,
    steps.length === 0 && 'The program has no steps.',
  ].filter((line) => line !== false)
}

/** The summary in one line. */
export function summary(result: CrashtestResult): string {
  const { points } = result
  const with_ = (verdict: EffectVerdict): number =>
    points.filter(({ effects }) => effects.some((one) => one.verdict === verdict)).length
  const stuck = points.filter(({ ending }) => ending === 'failed' || ending === 'timed_out').length
  const parts = [
    `${with_('doubled')} doubled`,
    `${with_('lost')} lost`,
    with_('changed') > 0 && `${with_('changed')} changed`,
    with_('held') > 0 && `${with_('held')} held for a person`,
    stuck > 0 && `${stuck} did not end`,
  ].filter((part) => part !== false)
  return `${countOf(points.length, 'crash')}: ${parts.join(', ')}.`
}

/** Whether something was doubled or lost, or did not end. */
export function isBroken({ points }: CrashtestResult): boolean {
  return points.some(hasFailed)
}

function countOf(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : word.endsWith('h') ? 'es' : 's'}`
}
