/**
 * One model behind three vendors' formats: clients of OpenAI and Anthropic ask the same handler, each
 * with a key of its own; a tool that a client declares is called by that client.
 *
 * Prints:
 *
 *     models: small
 *     chat: Hello, Ada!
 *     messages: add {"a":1,"b":2}
 *     stream: one two three
 *     no key: 401 authentication_error
 *     too many: 429 rate_limit_exceeded, try again in 30 s
 */

// #region program
import { gateway } from '@skein/ai/gateway'
import { calls, says, scripted } from '@skein/ai/testing'

const handler = gateway({
  // Any model reference: openai('gpt-5-mini'), anthropic('claude-sonnet-4-5'), …
  models: {
    small: scripted([says('Hello, Ada!'), calls('add', { a: 1, b: 2 }), says('one two three')]),
  },
  keys: [
    { key: 'sk-ada', name: 'ada' },
    { key: 'sk-bob', name: 'bob', limits: { requestsPerMinute: 2 } },
  ],
})
// #endregion program

// A handler takes a Request and gives a Response: mount it in any server. Here it is asked directly.
async function ask(path: string, key: string, body?: object): Promise<Response> {
  return handler(
    new Request(`http://gateway.test${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { 'x-api-key': key, 'anthropic-version': '2023-06-01' },
      ...(body && { body: JSON.stringify(body) }),
    }),
  )
}

const messages = [{ role: 'user', content: 'Hello, I am Ada.' }]

const list = await (await ask('/v1/models', 'sk-ada')).json()
console.log('models:', list.data[0].id)

const chat = await (
  await ask('/v1/chat/completions', 'sk-ada', { model: 'small', messages })
).json()
console.log('chat:', chat.choices[0].message.content)

const tools = [{ name: 'add', input_schema: { type: 'object' } }]
const request = { model: 'small', max_tokens: 100, messages, tools }
const message = await (await ask('/v1/messages', 'sk-ada', request)).json()
console.log('messages:', message.content[0].name, JSON.stringify(message.content[0].input))

const stream = await ask('/v1/responses', 'sk-ada', {
  model: 'small',
  input: 'Count.',
  stream: true,
})
const deltas = (await stream.text()).matchAll(/"delta":"([^"]*)"/g)
console.log('stream:', [...deltas].map(([, text]) => text).join(''))

const noKey = await ask('/v1/messages', 'sk-nobody', request)
console.log('no key:', noKey.status, (await noKey.json()).error.type)

await ask('/v1/models', 'sk-bob')
await ask('/v1/models', 'sk-bob')
const refused = await ask('/v1/chat/completions', 'sk-bob', { model: 'small', messages })
const wait = refused.headers.get('retry-after')
console.log(
  'too many:',
  refused.status,
  `${(await refused.json()).error.code}, try again in ${wait} s`,
)
