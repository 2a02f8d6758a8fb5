import type { Bench } from '../runner/bench.ts'
import { importTime } from '../runner/import-time.ts'

const bench: Bench = importTime(
  'Agents: import of the core and one vendor',
  ['@skein/agents', '@skein/ai/openai'],
  {
    'ai sdk': ['ai', '@ai-sdk/openai-compatible'],
    'openai agents': ['@openai/agents'],
    langgraph: ['@langchain/langgraph', '@langchain/openai'],
  },
)
export default bench
