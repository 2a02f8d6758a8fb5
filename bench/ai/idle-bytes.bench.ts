import { measured, type Bench } from '../runner/bench.ts'
import { heldMessages, idleMessages } from './idle-messages.ts'

const bench: Bench = {
  title: 'AI: heap of one message of 120 characters in a conversation at rest',
  baseline: 'plain objects',
  measure: 'returned',
  unit: 'B',
  warmups: 1,
  repetitions: 3,
  contenders: idleMessages((collect, build) => {
    collect()
    const before = process.memoryUsage().heapUsed
    const held = [build()]
    collect()
    const bytes = process.memoryUsage().heapUsed - before
    return measured(bytes / heldMessages, held.length)
  }),
}
export default bench
