import { measured, type Bench } from '../runner/bench.ts'
import { heldMessages, idleMessages } from './idle-messages.ts'

const bench: Bench = {
  title: `AI: a full garbage collection with ${heldMessages.toLocaleString('en')} messages at rest`,
  baseline: 'plain objects',
  measure: 'returned',
  unit: 'ms',
  warmups: 1,
  repetitions: 3,
  contenders: idleMessages((collect, build) => {
    const held = [build()]
    collect()
    const start = performance.now()
    collect()
    return measured(performance.now() - start, held.length)
  }),
}
export default bench
