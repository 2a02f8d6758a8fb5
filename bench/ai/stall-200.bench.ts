import { measured, type Bench } from '../runner/bench.ts'
import { contenders } from './clients/client.ts'

const streams = 200
const seconds = 3

const bench: Bench = {
  title: `AI: longest stall of the event loop with ${streams} streams of 50 tokens a second`,
  baseline: 'raw',
  measure: 'returned',
  unit: 'ms',
  warmups: 1,
  repetitions: 2,
  contenders: contenders((client) => async () => {
    let longest = 0
    let before = performance.now()
    const timer = setInterval(() => {
      const now = performance.now()
      longest = Math.max(longest, now - before - 1)
      before = now
    }, 1)
    let tokens = 0
    const one = (): Promise<void> => client.stream(`paced-${seconds * 50}-20`, () => tokens++)
    await Promise.all(Array.from({ length: streams }, one))
    clearInterval(timer)
    return measured(longest, tokens)
  }),
}
export default bench
