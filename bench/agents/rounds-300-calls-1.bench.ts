import type { Bench } from '../runner/bench.ts'
import { toolLoop } from './tool-loop.ts'

const bench: Bench = toolLoop({ rounds: 300, calls: 1 }, { warmups: 1, repetitions: 3 })
export default bench
