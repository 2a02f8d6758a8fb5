import { measured, type Bench } from '../runner/bench.ts'
import { contenders } from './clients/client.ts'

const bench: Bench = {
  title: 'Runtime: turns 281 to 300 of one thread against turns 11 to 30, CPU time',
  baseline: 'by hand',
  measure: 'returned',
  unit: 'times',
  warmups: 1,
  repetitions: 2,
  processes: 2,
  contenders: contenders(
    (client) => {
      let thread = 0
      return async () => {
        const name = `thread ${thread++}`
        const spans = { early: 0, late: 0 }
        for (let turn = 1; turn <= 300; turn++) {
          const before = process.cpuUsage()
          await client.turn(name, `What is known? (${turn})`)
          const { user, system } = process.cpuUsage(before)
          if (turn > 10 && turn <= 30) spans.early += user + system
          if (turn > 280) spans.late += user + system
        }
        return measured(spans.late / spans.early, 300)
      }
    },
    // The floor is that of short threads; the others take minutes, because each turn writes the whole thread again.
    ['by hand, same facts', 'langgraph', 'mastra'],
  ),
}
export default bench
