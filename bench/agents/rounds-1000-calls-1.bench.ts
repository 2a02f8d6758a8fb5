import type { Bench } from '../runner/bench.ts'
import { toolLoop } from './tool-loop.ts'

const bench: Bench = toolLoop(
  { rounds: 1000, calls: 1 },
  { warmups: 0, repetitions: 2, processes: 2, without: ['langgraph (memory)'] },
)
export default bench
