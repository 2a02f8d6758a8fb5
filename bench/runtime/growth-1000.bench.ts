import { measured, type Bench } from '../runner/bench.ts'
import { contenders } from './clients/client.ts'

const bench: Bench = {
  title: 'Runtime: turns 981 to 1,000 of one thread against turns 11 to 30, CPU time',
  baseline: 'by hand',
  measure: 'returned',
  unit: 'times',
  warmups: 0,
  repetitions: 1,
  processes: 3,
  contenders: contenders(
    (client) => {
      let thread = 0
      return async () => {
        const name = `thread ${thread++}`
        const spans = { early: 0, late: 0 }
        for (let turn = 1; turn <= 1_000; turn++) {
          const before = process.cpuUsage()
          await client.turn(name, `What is known? (${turn})`)
          const { user, system } = process.cpuUsage(before)
          if (turn > 10 && turn <= 30) spans.early += user + system
          if (turn > 980) spans.late += user + system
        }
        return measured(spans.late / spans.early, 1_000)
      }
    },
    // The floor is that of short threads; the others take minutes, because each turn writes the whole thread again.
    ['by hand, same facts', 'langgraph', 'mastra'],
  ),
}
export default bench
