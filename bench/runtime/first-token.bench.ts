import { measured, type Bench } from '../runner/bench.ts'
import { rawStream, skeinStream, type Stream } from './streaming.ts'

const answers = 20
const model = 'tokens-50'

async function firstToken(open: () => Promise<Stream>): Promise<number> {
  let total = 0
  for (let index = 0; index < answers; index++) {
    const stream = await open()
    let first: number | undefined
    const start = performance.now()
    await stream(() => (first ??= performance.now() - start))
    total += first ?? Number.NaN
  }
  return total / answers
}

const bench: Bench = {
  title: `Runtime: from a sent message to the first word of its answer, mean of ${answers} threads`,
  baseline: 'raw model call',
  measure: 'returned',
  unit: 'ms',
  warmups: 3,
  repetitions: 10,
  contenders: {
    'raw model call': {
      async prepare() {
        const stream = await rawStream(model)
        return async () => measured(await firstToken(async () => stream), answers)
      },
    },
    'skein, durable': {
      async prepare() {
        const { open } = await skeinStream(model)
        return async () => measured(await firstToken(open), answers)
      },
    },
  },
}
export default bench
