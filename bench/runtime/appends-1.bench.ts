import type { Bench } from '../runner/bench.ts'
import { appends } from './appends.ts'

const bench: Bench = appends({ writers: 1, each: 500 })
export default bench
