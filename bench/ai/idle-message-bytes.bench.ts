import { measured, type Bench } from '../runner/bench.ts'
import { idleMessages, messages } from './idle-messages.ts'

const bench: Bench = {
  title: 'AI: heap of one idle message of 120 characters, its text included',
  baseline: 'plain objects',
  measure: 'returned',
  unit: 'bytes',
  warmups: 1,
  repetitions: 2,
  contenders: idleMessages((before, collect, held) => {
    collect()
    return measured((process.memoryUsage().heapUsed - before) / messages, held.length)
  }),
}
export default bench
