/** The official `ollama` package as a client of the vendor server. */
import { calls, fails, reasons, says, startVendorServer, stops } from '@skein/ai/testing'
import { Ollama, type Message, type Tool } from 'ollama'
import { expect, test } from 'vitest'

const model = 'qwen3'
const hi: Message[] = [{ role: 'user', content: 'Hi' }]
const tools: Tool[] = [
  {
    type: 'function',
    function: {
      name: 'add',
      description: 'Adds.',
      parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
    },
  },
]

test('an answer with thinking, counts and structured output', async () => {
  await using server = await startVendorServer([[reasons('Hm.'), says('{"city":"Ghent"}')]])
  const answer = await new Ollama({ host: server.url }).chat({
    model,
    messages: [{ role: 'system', content: 'Be brief.' }, ...hi],
    think: true,
    format: { type: 'object', properties: { city: { type: 'string' } } },
    options: { temperature: 0 },
  })
  expect(answer.message.thinking).toBe('Hm.')
  expect(JSON.parse(answer.message.content)).toEqual({ city: 'Ghent' })
  expect(answer.done).toBe(true)
  expect(answer.eval_count).toBeGreaterThan(0)
  expect(server.model.requests[0]).toMatchObject({
    system: 'Be brief.',
    params: { think: true, options: { temperature: 0 } },
  })
})

test('a stream, and its abort reaches the server', async () => {
  await using server = await startVendorServer([says('one two three'), says('word '.repeat(500))], {
    paceMs: 1,
  })
  const client = new Ollama({ host: server.url })
  const texts: string[] = []
  for await (const part of await client.chat({ model, messages: hi, stream: true }))
    texts.push(part.message.content)
  expect(texts.join('')).toBe('one two three')
  const stream = await client.chat({ model, messages: hi, stream: true })
  const read = async (): Promise<void> => {
    for await (const part of stream) if (part.message.content) stream.abort()
  }
  await expect(read()).rejects.toThrow(/abort/i)
  await expect.poll(() => server.requests[1]?.isAborted).toBe(true)
})

test('a tool round', async () => {
  await using server = await startVendorServer([calls('add', { a: 1, b: 2 }), says('Three.')])
  const client = new Ollama({ host: server.url })
  const first = await client.chat({ model, messages: hi, tools })
  expect(first.message.tool_calls?.[0]?.function).toEqual({
    name: 'add',
    arguments: { a: 1, b: 2 },
  })
  const second = await client.chat({
    model,
    tools,
    messages: [...hi, first.message, { role: 'tool', content: '3', tool_name: 'add' }],
  })
  expect(second.message.content).toBe('Three.')
})

test('embeddings', async () => {
  await using server = await startVendorServer([])
  const { embeddings } = await new Ollama({ host: server.url }).embed({
    model: 'nomic',
    input: ['one', 'two'],
    dimensions: 5,
  })
  expect(embeddings.map(({ length }) => length)).toEqual([5, 5])
})

test('errors, before and inside a stream', async () => {
  await using server = await startVendorServer([
    fails({ code: 'MODEL_NOT_FOUND', message: 'model "x" not found' }),
    [says('part'), fails({ message: 'out of memory' })],
    [says('cut'), stops('max_tokens')],
  ])
  const client = new Ollama({ host: server.url })
  await expect(client.chat({ model, messages: hi })).rejects.toMatchObject({
    status_code: 404,
    message: 'model "x" not found',
  })
  const read = async (): Promise<void> => {
    for await (const part of await client.chat({ model, messages: hi, stream: true })) void part
  }
  await expect(read()).rejects.toThrow('out of memory')
  expect((await client.chat({ model, messages: hi })).done_reason).toBe('length')
})
