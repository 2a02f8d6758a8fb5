import { measured, type Bench } from '../runner/bench.ts'
import { contenders } from './clients/client.ts'

const short = 2000
const long = 20_000

const bench: Bench = {
  title: `AI: CPU per token in an answer of ${long.toLocaleString('en')}, over that in one of ${short.toLocaleString('en')}`,
  baseline: 'raw',
  measure: 'returned',
  unit: '×',
  warmups: 2,
  repetitions: 5,
  contenders: contenders((client) => {
    const perToken = async (tokens: number, times: number): Promise<number> => {
      const start = process.cpuUsage()
      for (let i = 0; i < times; i++) await client.stream(`tokens-${tokens}`, () => {})
      const { user, system } = process.cpuUsage(start)
      return (user + system) / tokens / times
    }
    return async () => measured((await perToken(long, 1)) / (await perToken(short, 10)), 'ok')
  }),
}
export default bench
