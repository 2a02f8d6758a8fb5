import { parseThread } from '@skein/threads'
import type { Bench } from '../runner/bench.ts'
import { bigThread } from './sample.ts'

const megabytes = 20

const bench: Bench = {
  title: `text of ${megabytes} MB to a checked thread (goal: 1.25x JSON.parse)`,
  baseline: 'JSON.parse alone',
  amount: { value: megabytes, unit: 'MB' },
  contenders: {
    'JSON.parse alone': {
      prepare() {
        const text = JSON.stringify(bigThread(megabytes))
        return () => (JSON.parse(text) as { turns: unknown[] }).turns.length
      },
    },
    parseThread: {
      prepare() {
        const text = JSON.stringify(bigThread(megabytes))
        return () => parseThread(text).turns.length
      },
    },
    // One number that JavaScript would print otherwise sends the whole text down the exact path.
    'parseThread, with a number to keep': {
      prepare() {
        const text = JSON.stringify(bigThread(megabytes)).replace(
          '"temperature":18',
          '"temperature":18.0',
        )
        return () => parseThread(text).turns.length
      },
    },
  },
}

export default bench
