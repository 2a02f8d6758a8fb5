import type { Bench } from '../runner/bench.ts'
import { toolLoop } from './tool-loop.ts'

const bench: Bench = toolLoop(
  { rounds: 300, calls: 8 },
  { warmups: 0, repetitions: 2, processes: 2, without: ['langgraph (memory)'] },
)
export default bench
