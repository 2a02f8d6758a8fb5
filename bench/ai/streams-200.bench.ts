import type { Bench } from '../runner/bench.ts'
import { contenders } from './clients/client.ts'

const streams = 200
const tokens = 200

const bench: Bench = {
  title: `AI: ${streams} concurrent streams, ${tokens} tokens each`,
  baseline: 'raw',
  measure: 'cpu',
  amount: { value: streams * tokens, unit: 'tokens' },
  warmups: 3,
  repetitions: 5,
  contenders: contenders((client) => async () => {
    let length = 0
    const one = (): Promise<void> =>
      client.stream(`tokens-${tokens}`, (text) => (length += text.length))
    await Promise.all(Array.from({ length: streams }, one))
    return length
  }),
}
export default bench
