import type { Bench } from '../runner/bench.ts'
import { idleMessages, messages } from './idle-messages.ts'

const bench: Bench = {
  title: `AI: a full garbage collection while ${messages.toLocaleString('en')} messages are held`,
  baseline: 'plain objects',
  warmups: 2,
  repetitions: 3,
  contenders: idleMessages((_before, collect, held) => {
    collect()
    return held.length
  }),
}
export default bench
