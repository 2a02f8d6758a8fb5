import type { Bench } from '../runner/bench.ts'
import { contenders } from './clients/client.ts'

const calls = 100

const bench: Bench = {
  title: `AI: ${calls} calls, one at a time`,
  baseline: 'raw',
  measure: 'cpu',
  amount: { value: calls, unit: 'calls' },
  repetitions: 10,
  contenders: contenders((client) => async () => {
    let length = 0
    for (let i = 0; i < calls; i++) length += (await client.call()).length
    return length
  }),
}
export default bench
