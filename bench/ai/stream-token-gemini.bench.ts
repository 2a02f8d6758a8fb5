import type { Bench } from '../runner/bench.ts'
import { streamTokens } from './stream-token.ts'

const bench: Bench = streamTokens('gemini', 'Gemini')
export default bench
