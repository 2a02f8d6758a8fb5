import { readFileSync } from 'node:fs'
import { measured, type Bench } from '../runner/bench.ts'
import { contenders } from './clients/client.ts'

const turns = 50

/** Bytes that this process gave to `write`, as Linux counts them. */
function writtenBytes(): number {
  return Number(/^wchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])
}

const bench: Bench = {
  title:
    'Runtime: bytes written per turn with one tool round (Linux; requests to the vendor included)',
  baseline: 'by hand',
  measure: 'returned',
  unit: 'bytes',
  warmups: 1,
  repetitions: 3,
  processes: 2,
  contenders: contenders((client) => {
    let repetition = 0
    return async () => {
      const thread = `thread ${repetition++}`
      const before = writtenBytes()
      for (let turn = 0; turn < turns; turn++) await client.turn(thread, `What is known? (${turn})`)
      return measured((writtenBytes() - before) / turns, turns)
    }
  }),
}
export default bench
