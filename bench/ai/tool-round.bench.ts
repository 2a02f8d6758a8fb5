import type { Bench } from '../runner/bench.ts'
import { contenders } from './clients/client.ts'

const rounds = 50

const bench: Bench = {
  title: `AI: a run of ${rounds} rounds with one tool`,
  baseline: 'raw',
  measure: 'cpu',
  amount: { value: rounds, unit: 'rounds' },
  warmups: 3,
  repetitions: 10,
  contenders: contenders((client) => async () => {
    let ran = 0
    const text = await client.runTools(`tools-${rounds}`, (id) => {
      ran++
      return { id, title: 'A thread', tags: ['long', 'red'] }
    })
    return { ran, length: text.length }
  }),
}
export default bench
