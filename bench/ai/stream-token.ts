import type { Bench } from '../runner/bench.ts'
import { chatOnly, contenders } from './clients/client.ts'
import type { FormatName } from './mock/formats.ts'

const tokens = 5000
const answers = 4

/** Streams long answers of one wire format. */
export function streamTokens(format: FormatName, title: string): Bench {
  return {
    title: `AI: streamed tokens of ${title}, ${answers} answers of ${tokens.toLocaleString('en')}`,
    baseline: 'raw',
    measure: 'cpu',
    amount: { value: tokens * answers, unit: 'tokens' },
    repetitions: 10,
    contenders: contenders(
      (client) => async () => {
        let length = 0
        for (let i = 0; i < answers; i++)
          await client.stream(`tokens-${tokens}`, (text) => (length += text.length), format)
        return length
      },
      format === 'chat' ? [] : chatOnly,
    ),
  }
}
