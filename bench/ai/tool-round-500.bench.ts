import { measured, type Bench } from '../runner/bench.ts'
import { contenders } from './clients/client.ts'

const rounds = 500
const counted = 50

const bench: Bench = {
  title: `AI: CPU of one of the last ${counted} rounds in a run of ${rounds}`,
  baseline: 'raw',
  measure: 'returned',
  unit: 'ms',
  warmups: 1,
  repetitions: 3,
  contenders: contenders((client) => async () => {
    let ran = 0
    let start = process.cpuUsage()
    await client.runTools(`tools-${rounds}`, (id) => {
      if (++ran === rounds - counted) start = process.cpuUsage()
      return { id, title: 'A thread', tags: ['long', 'red'] }
    })
    const { user, system } = process.cpuUsage(start)
    return measured((user + system) / 1000 / counted, ran)
  }),
}
export default bench
