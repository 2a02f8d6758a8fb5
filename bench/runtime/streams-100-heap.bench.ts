import type { Bench } from '../runner/bench.ts'
import { streams100 } from './streams-100.ts'

const bench: Bench = streams100({ title: 'largest heap', unit: 'MB' }, () => {
  let largest = 0
  return {
    sample: () => (largest = Math.max(largest, process.memoryUsage().heapUsed)),
    value: () => largest / 1e6,
  }
})
export default bench
