import { seededRandom } from '@skein/base'
import type { CrashPoint } from './run-point.ts'
import type { ProgramStep } from './preload/protocol.ts'

/** All places at which a program can die: before and after each step. Steps with the same name get `#1`, `#2` and so on. */
export function crashPoints(steps: readonly ProgramStep[]): CrashPoint[] {
  const totals = new Map<string, number>()
  for (const { name } of steps) totals.set(name, (totals.get(name) ?? 0) + 1)
  const counts = new Map<string, number>()
  return steps.flatMap((step) => {
    const count = (counts.get(step.name) ?? 0) + 1
    counts.set(step.name, count)
    const name = totals.get(step.name) === 1 ? step.name : `${step.name} #${count}`
    const named = { ...step, name }
    return [{ step: named, when: 'before' } as const, { step: named, when: 'after' } as const]
  })
}

/**
 * Chooses at most `max` crash points, in order. The same seed chooses the same ones. Those of requests and tools come first,
 * because the world changes there.
 */
export function choosePoints(
  points: readonly CrashPoint[],
  { max, seed }: { readonly max: number; readonly seed: number },
): CrashPoint[] {
  if (points.length <= max) return [...points]
  const random = seededRandom(seed)
  const shuffled = points
    .map((point, index) => ({
      point,
      index,
      order: random() + (point.step.kind === 'commit' ? 1 : 0),
    }))
    .toSorted((a, b) => a.order - b.order)
  return shuffled
    .slice(0, max)
    .toSorted((a, b) => a.index - b.index)
    .map(({ point }) => point)
}
