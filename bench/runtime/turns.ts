import type { Bench } from '../runner/bench.ts'
import { contenders } from './clients/client.ts'

/** Turns with one tool round each, in so many threads at the same time. */
export function turns(
  { threads, each }: { readonly threads: number; readonly each: number },
  options: Partial<Pick<Bench, 'measure' | 'warmups' | 'repetitions' | 'processes'>> = {},
): Bench {
  const amount = threads * each
  const where = threads === 1 ? 'one thread' : `${threads} threads at the same time`
  return {
    title: `Runtime: ${amount} turns with one tool round each, ${where}, kept in SQLite`,
    baseline: 'by hand',
    measure: 'cpu',
    amount: { value: amount, unit: 'turns' },
    warmups: 1,
    repetitions: 5,
    ...options,
    contenders: contenders((client, counts) => {
      let repetition = 0
      return async () => {
        const before = counts.lookUps
        const name = `thread ${repetition++}`
        const one = async (index: number): Promise<string[]> => {
          const texts: string[] = []
          for (let turn = 0; turn < each; turn++)
            texts.push(await client.turn(`${name}.${index}`, `What is known? (${turn})`))
          return texts
        }
        const texts = await Promise.all(Array.from({ length: threads }, (_, index) => one(index)))
        return { texts, lookUps: counts.lookUps - before }
      }
    }),
  }
}
