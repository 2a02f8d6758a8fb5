import type { Bench } from '../runner/bench.ts'
import { toolLoop } from './tool-loop.ts'

const bench: Bench = toolLoop({ rounds: 50, calls: 8 }, { warmups: 2, repetitions: 5 })
export default bench
