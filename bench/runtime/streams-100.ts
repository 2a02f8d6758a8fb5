import { measured, type Bench, type Timed } from '../runner/bench.ts'
import { rawStream, skeinStream, type Stream } from './streaming.ts'

const count = 100
const seconds = 3
const model = `paced-${seconds * 50}-20`

/** 100 concurrent answers, each with 50 tokens a second; `sample` is asked every few milliseconds. */
export function streams100(
  what: { readonly title: string; readonly unit: string },
  sampler: () => { readonly sample: () => void; readonly value: () => number },
): Bench {
  const repetition =
    (open: () => Promise<Stream>): Timed =>
    async () => {
      const streams = await Promise.all(Array.from({ length: count }, open))
      let characters = 0
      const { sample, value } = sampler()
      const timer = setInterval(sample, 1)
      await Promise.all(streams.map((stream) => stream((text) => (characters += text.length))))
      clearInterval(timer)
      return measured(value(), characters)
    }
  return {
    title: `Runtime: ${what.title} with ${count} threads of 50 tokens a second`,
    baseline: 'raw model calls',
    measure: 'returned',
    unit: what.unit,
    warmups: 1,
    repetitions: 3,
    contenders: {
      'raw model calls': {
        async prepare() {
          const stream = await rawStream(model)
          return repetition(async () => stream)
        },
      },
      'skein, durable': {
        async prepare() {
          return repetition((await skeinStream(model)).open)
        },
      },
    },
  }
}
