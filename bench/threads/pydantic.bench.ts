import { parseThread } from '@skein/threads'
import { fromPydanticAI, toPydanticAIText } from '@skein/threads/pydantic-ai'
import type { Bench } from '../runner/bench.ts'
import { bigThread } from './sample.ts'

const megabytes = 10

/** The thread as it is stored when it came from Pydantic AI. */
function storedText(): string {
  const history = toPydanticAIText(bigThread(megabytes)).value
  return JSON.stringify(fromPydanticAI(history, { agentId: 'ada' }).value)
}

const bench: Bench = {
  title: `thread text of ${megabytes} MB to Pydantic AI text (goal: 0.5 of the speed of parse and stringify)`,
  baseline: 'JSON.parse + JSON.stringify',
  amount: { value: megabytes, unit: 'MB' },
  contenders: {
    // Moves the same bytes and understands none of them.
    'JSON.parse + JSON.stringify': {
      sameOutput: false,
      prepare() {
        const text = storedText()
        return () => JSON.stringify(JSON.parse(text)).length
      },
    },
    'parseThread + toPydanticAIText': {
      prepare() {
        const text = storedText()
        return () => toPydanticAIText(parseThread(text)).value.length
      },
    },
    fromPydanticAI: {
      sameOutput: false,
      prepare() {
        const history = toPydanticAIText(bigThread(megabytes)).value
        return () => fromPydanticAI(history, { agentId: 'ada' }).value.turns.length
      },
    },
  },
}

export default bench
