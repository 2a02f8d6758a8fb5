import type { Bench } from '../runner/bench.ts'
import { runs } from './clients/runner.ts'

/** One run of an agent: so many rounds, each with so many concurrent calls. */
export function toolLoop(
  size: { readonly rounds: number; readonly calls: number },
  options: Partial<Pick<Bench, 'warmups' | 'repetitions' | 'processes'>> & {
    /** Left out because they would take minutes for one repetition. */
    readonly without?: readonly string[]
  } = {},
): Bench {
  const { without, ...counts } = options
  const { rounds, calls } = size
  return {
    title: `Agents: a run of ${rounds.toLocaleString('en')} rounds with ${calls === 1 ? 'one call' : `${calls} concurrent calls`}`,
    baseline: 'raw',
    measure: 'cpu',
    amount: { value: rounds, unit: 'rounds' },
    contenders: runs(size, without),
    ...counts,
  }
}
