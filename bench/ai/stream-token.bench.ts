import type { Bench } from '../runner/bench.ts'
import { streamTokens } from './stream-token.ts'

const bench: Bench = streamTokens('chat', 'Chat Completions')
export default bench
