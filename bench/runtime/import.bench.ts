import type { Bench } from '../runner/bench.ts'
import { importTime } from '../runner/import-time.ts'

const bench: Bench = importTime('Runtime: import', ['@skein/runtime'], {
  langgraph: ['@langchain/langgraph', '@langchain/langgraph-checkpoint-sqlite'],
  mastra: ['@mastra/core', '@mastra/memory', '@mastra/libsql'],
})
export default bench
