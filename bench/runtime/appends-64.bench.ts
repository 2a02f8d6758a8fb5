import type { Bench } from '../runner/bench.ts'
import { appends } from './appends.ts'

const bench: Bench = appends({ writers: 64, each: 25 })
export default bench
