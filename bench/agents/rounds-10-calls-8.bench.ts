import type { Bench } from '../runner/bench.ts'
import { toolLoop } from './tool-loop.ts'

const bench: Bench = toolLoop({ rounds: 10, calls: 8 }, { warmups: 10, repetitions: 20 })
export default bench
