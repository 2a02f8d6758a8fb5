import { measured, type Bench } from '../runner/bench.ts'
import { contenders } from './clients/client.ts'

const answers = 20

const bench: Bench = {
  title: `AI: time to the first token, mean of ${answers} answers`,
  baseline: 'raw',
  measure: 'returned',
  unit: 'ms',
  warmups: 3,
  repetitions: 10,
  contenders: contenders((client) => async () => {
    let total = 0
    let count = 0
    for (let i = 0; i < answers; i++) {
      const start = performance.now()
      let isFirst = true
      await client.stream('tokens-50', () => {
        if (isFirst) total += performance.now() - start
        isFirst = false
        count++
      })
    }
    return measured(total / answers, count)
  }),
}
export default bench
