import { validateThread } from '@skein/threads'
import { threadSchema } from '@skein/threads/schema'
import type { Bench } from '../runner/bench.ts'
import { bigThread } from './sample.ts'

const megabytes = 20

const bench: Bench = {
  title: `validate a parsed thread of ${megabytes} MB (goal: 600 MB/s, structure and rules)`,
  baseline: '@skein/threads',
  amount: { value: megabytes, unit: 'MB' },
  contenders: {
    '@skein/threads': {
      prepare() {
        const thread = bigThread(megabytes)
        return () => validateThread(thread).valid
      },
    },
    // Structure only: the five rules are beyond a schema.
    'ajv, our schema': {
      async prepare() {
        const { Ajv2020 } = await import('ajv/dist/2020.js')
        const validate = new Ajv2020({ strict: false }).compile(threadSchema)
        const thread = bigThread(megabytes)
        return () => validate(thread)
      },
    },
  },
}

export default bench
