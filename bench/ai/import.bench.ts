import type { Bench } from '../runner/bench.ts'
import { importTime } from '../runner/import-time.ts'

const bench: Bench = importTime(
  'AI: import of the core and one vendor',
  ['@skein/ai', '@skein/ai/openai'],
  {
    'openai sdk': ['openai'],
    'ai sdk': ['ai', '@ai-sdk/openai-compatible'],
    langchain: ['@langchain/openai'],
  },
)
export default bench
