import type { Bench } from '../runner/bench.ts'
import { contenders } from './clients/client.ts'

const tokens = 5000
const answers = 4

const bench: Bench = {
  title: `AI: streamed tokens, ${answers} answers of ${tokens.toLocaleString('en')}`,
  baseline: 'raw',
  measure: 'cpu',
  amount: { value: tokens * answers, unit: 'tokens' },
  repetitions: 10,
  contenders: contenders((client) => async () => {
    let length = 0
    for (let i = 0; i < answers; i++)
      await client.stream(`tokens-${tokens}`, (text) => (length += text.length))
    return length
  }),
}
export default bench
