import type { Bench } from '../runner/bench.ts'
import { toolLoop } from './tool-loop.ts'

const bench: Bench = toolLoop(
  { rounds: 1000, calls: 8 },
  {
    warmups: 0,
    repetitions: 1,
    processes: 2,
    without: ['openai agents', 'langgraph', 'langgraph (memory)'],
  },
)
export default bench
