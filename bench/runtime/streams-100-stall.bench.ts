import type { Bench } from '../runner/bench.ts'
import { streams100 } from './streams-100.ts'

const bench: Bench = streams100({ title: 'longest stall of the event loop', unit: 'ms' }, () => {
  let longest = 0
  let before = performance.now()
  return {
    sample() {
      const now = performance.now()
      longest = Math.max(longest, now - before - 1)
      before = now
    },
    value: () => longest,
  }
})
export default bench
