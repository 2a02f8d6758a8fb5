import type { Bench } from '../runner/bench.ts'
import { turns } from './turns.ts'

const bench: Bench = turns({ threads: 1, each: 40 })
export default bench
