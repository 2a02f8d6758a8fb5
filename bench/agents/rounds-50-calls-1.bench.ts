import type { Bench } from '../runner/bench.ts'
import { toolLoop } from './tool-loop.ts'

const bench: Bench = toolLoop({ rounds: 50, calls: 1 }, { warmups: 3, repetitions: 8 })
export default bench
