/**
 * One conversation, a different vendor for every turn: what each of them leaves in the history must
 * be a valid request to all the others. The vendor server refuses what breaks a vendor's rule, what
 * another vendor signed, and reasoning whose text was changed.
 */
import { isUPPError, llm, NoRetry, type Message, type Tool } from '@skein/ai'
import { calls, cuts, reasons, says, stops, vendorServer, type ScriptPart } from '@skein/ai/testing'
import { sequentialIds } from '@skein/base'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { vendors } from './vendors.ts'

const png = 'iVBORw0KGgo='

const results: readonly unknown[] = [
  'plain text',
  '',
  undefined,
  null,
  42,
  [1, 2],
  { output: 1, error: 2 },
  { type: 'image', source: { type: 'base64', data: png }, mimeType: 'image/png' },
  [
    { type: 'text', text: 'see:' },
    { type: 'document', source: { type: 'text', data: 'page' }, mimeType: 'text/plain' },
  ],
  new Uint8Array([1, 2, 3]),
]

const text = fc.constantFrom('Yes.', '', ' ', '{"n":1}', 'Grüße 🧵', '<b>&"\\')
const callId = fc.constantFrom(undefined, undefined, 'google:0:ü', 'toolu_01', 'c-1')
const args = fc.constantFrom<Record<string, never> | object | string>(
  {},
  { n: 1 },
  { nested: { list: [null, 'ü'] } },
  '',
  '{"n":',
  '[1]',
)

const part: fc.Arbitrary<ScriptPart> = fc.oneof(
  text.map((value) => says(value)),
  text.map((value) => reasons(value)),
  fc
    .tuple(fc.constantFrom('look', 'missing'), args, callId, fc.nat(results.length - 1))
    .map(([name, given, id, result]) =>
      calls(
        name,
        typeof given === 'string' ? given : { ...given, result },
        id === undefined ? {} : { id },
      ),
    ),
)

const ending: fc.Arbitrary<readonly ScriptPart[]> = fc.oneof(
  { weight: 6, arbitrary: fc.constant([]) },
  { weight: 1, arbitrary: fc.constant([stops('max_tokens')]) },
  { weight: 1, arbitrary: fc.constant([cuts()]) },
)

const turn = fc.record({
  vendor: fc.nat(vendors.length - 1),
  streamed: fc.boolean(),
  /** 0 leaves the calls open: the next vendor gets a history with unanswered calls. */
  rounds: fc.constantFrom(0, 1, 2),
  answers: fc.array(fc.tuple(fc.array(part, { maxLength: 4 }), ending), {
    minLength: 1,
    maxLength: 3,
  }),
})

const look: Tool = {
  name: 'look',
  description: 'Returns one of many things.',
  parameters: { type: 'object', properties: { result: { type: 'number' } } },
  run: ({ result = 0 }: { result?: number }) => {
    if (result === 3) throw new Error('The tool failed.')
    return results[result]
  },
}

/** An id that is used twice in one conversation is a fault of the script, not of the history. */
function withOwnIds(parts: readonly ScriptPart[], used: Set<string>): readonly ScriptPart[] {
  return parts.map((one) => {
    if (one.do !== 'call' || one.toolCallId === undefined) return one
    if (!used.has(one.toolCallId)) {
      used.add(one.toolCallId)
      return one
    }
    const { toolCallId: _, ...rest } = one
    return rest
  })
}

test('UPP-057 any history goes through all vendors in any order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(turn, { minLength: 2, maxLength: 6 }), async (turns) => {
      const used = new Set<string>()
      const ids = sequentialIds('r')
      let history: readonly Message[] = []
      for (const { vendor, streamed, rounds, answers } of turns) {
        const { model, prefix } = vendors[vendor]!
        const server = vendorServer(
          (_, index) => {
            const [parts, end] = answers[index] ?? [[says('Done.')], []]
            return withOwnIds([...parts, ...end], used)
          },
          { ids },
        )
        const asked = llm({
          model,
          tools: [look],
          toolStrategy: { maxIterations: rounds },
          config: {
            fetch: server.fetch,
            baseUrl: `http://${model.provider.name}.test${prefix}`,
            apiKey: 'sk-test',
            retryStrategy: new NoRetry(),
          },
        })
        const outcome = streamed
          ? asked.stream(history, 'And now?').turn
          : asked.generate(history, 'And now?')
        const done = await outcome.catch((error: unknown) => {
          // A cut answer is an error; what came of it may be kept by the caller.
          if (isUPPError(error) && error.code === 'INVALID_RESPONSE' && error.turn)
            return error.turn
          throw error
        })
        expect(done.messages).not.toEqual([])
        history = [...history, ...done.messages]
      }
    }),
    { numRuns: process.env['SKEIN_DEEP'] ? 3000 : 150, seed: 57 },
  )
}, 600_000)

test('the server would tell: it refuses a foreign signature and a changed thought', async () => {
  const anthropic = vendors.find(({ name }) => name === 'anthropic')!
  const server = vendorServer([[reasons('Hm.'), says('Yes.')], says('Again.')])
  const config = { fetch: server.fetch, apiKey: 'sk-test', retryStrategy: new NoRetry() }
  const at = (host: string) =>
    llm({ model: anthropic.model, config: { ...config, baseUrl: `http://${host}/v1` } })
  const { messages } = await at('a.test').generate('Hi')
  await expect(at('b.test').generate(messages, 'Again')).rejects.toThrow('thinking-signature')
  expect((await at('a.test').generate(messages, 'Again')).response.text).toBe('Again.')
})

test.each(vendors)(
  '$name: after an answer that ended in the middle of a thought or empty, the next one is asked for',
  async ({ model, prefix }) => {
    const server = vendorServer([
      [reasons('Hm.'), stops('max_tokens')],
      [says(''), stops('max_tokens')],
      says('Yes.'),
    ])
    const config = {
      fetch: server.fetch,
      baseUrl: `http://vendor.test${prefix}`,
      apiKey: 'sk-test',
      retryStrategy: new NoRetry(),
    }
    const asked = llm({ model, config })
    const first = await asked.generate('Hi')
    const second = await asked.generate(first.messages, 'And?')
    const third = await asked.generate([...first.messages, ...second.messages], 'Well?')
    expect(third.response.text).toBe('Yes.')
  },
)
