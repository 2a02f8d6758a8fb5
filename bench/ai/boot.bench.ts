import { peersOf } from '../../scripts/peers.ts'
import { measured, type Bench, type Contender } from '../runner/bench.ts'
import { bundleChanged, runPublished } from '../runner/published.ts'
import { startMock } from './mock/start-mock.ts'

/** From the start of a process to its first answer; the program gets the address of the vendor. */
function boot(program: string, peers: readonly string[] = []): Contender {
  return {
    peers,
    async prepare() {
      const [baseUrl] = await Promise.all([startMock(), bundleChanged()])
      const { loader } = peersOf('bench')
      const find = peers.length > 0 ? `import { load } from ${JSON.stringify(loader)};` : ''
      return async () => {
        const { stdout, wallMs } = await runPublished(
          `${find} const baseURL = process.argv[1]; ${program}`,
          [baseUrl],
        )
        return measured(wallMs, stdout)
      }
    },
  }
}

const ask = `'Hello there, how are you?'`

const bench: Bench = {
  title: 'AI: from the start of the process to the end of the first call',
  baseline: 'raw',
  measure: 'returned',
  unit: 'ms',
  warmups: 1,
  repetitions: 5,
  contenders: {
    raw: boot(`const response = await fetch(baseURL + '/chat/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer sk-test' },
        body: JSON.stringify({ model: 'whole', messages: [{ role: 'user', content: ${ask} }] }),
      })
      console.log((await response.json()).choices[0].message.content)
      process.exit(0)`),
    skein: boot(`import { llm } from '@skein/ai'
      import { openaiCompatible } from '@skein/ai/openai-compatible'
      const mock = openaiCompatible({ name: 'mock', baseUrl: baseURL })
      const turn = await llm({ model: mock('whole'), config: { apiKey: 'sk-test' } }).generate(${ask})
      console.log(turn.response.text)
      process.exit(0)`),
    'openai sdk': boot(
      `const { default: OpenAI } = await load('openai')
      const answer = await new OpenAI({ apiKey: 'sk-test', baseURL }).chat.completions.create({
        model: 'whole', messages: [{ role: 'user', content: ${ask} }],
      })
      console.log(answer.choices[0].message.content)
      process.exit(0)`,
      ['openai'],
    ),
    'ai sdk': boot(
      `const { generateText } = await load('ai')
      const { createOpenAICompatible } = await load('@ai-sdk/openai-compatible')
      const mock = createOpenAICompatible({ name: 'mock', apiKey: 'sk-test', baseURL })
      console.log((await generateText({ model: mock('whole'), prompt: ${ask} })).text)
      process.exit(0)`,
      ['ai', '@ai-sdk/openai-compatible'],
    ),
  },
}
export default bench
