import type { Bench } from '../runner/bench.ts'
import { contenders } from './clients/client.ts'

const calls = 256
const atOnce = 64

const bench: Bench = {
  title: `AI: ${calls} calls, ${atOnce} at a time`,
  baseline: 'raw',
  measure: 'cpu',
  amount: { value: calls, unit: 'calls' },
  repetitions: 10,
  contenders: contenders((client) => async () => {
    let left = calls
    let length = 0
    const work = async (): Promise<void> => {
      while (left-- > 0) {
        const text = await client.call()
        length += text.length
      }
    }
    await Promise.all(Array.from({ length: atOnce }, work))
    return length
  }),
}
export default bench
