import type { Bench } from '../runner/bench.ts'
import { turns } from './turns.ts'

const bench: Bench = turns({ threads: 64, each: 5 }, { repetitions: 2, processes: 2 })
export default bench
