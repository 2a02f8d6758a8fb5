/** Requests that hooks give are checked like those of the caller, before the model is asked. */
import {
  llm,
  UserMessage,
  type LLMCapabilities,
  type LLMRequest,
  type Middleware,
  type Tool,
} from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'

const echo: Tool = { name: 'echo', description: '', parameters: {}, run: (args: object) => args }
const picture = new UserMessage([
  {
    type: 'image',
    source: { type: 'url', url: 'https://example.com/a.png' },
    mimeType: 'image/png',
  },
])
const sound = new UserMessage([{ type: 'audio', data: new Uint8Array(1), mimeType: 'audio/wav' }])
const upload = { type: 'image', source: { type: 'file_id', id: 'f1' }, mimeType: 'image/png' }

type Change = (request: LLMRequest) => LLMRequest

const changes: [string, Partial<LLMCapabilities>, Change][] = [
  ['UPP-167 tools', { tools: false }, (request) => ({ ...request, tools: [echo] })],
  ['UPP-167 images', { imageInput: false }, withMessage(picture)],
  ['UPP-167 audio', { audioInput: false }, withMessage(sound)],
  ['UPP-167 a source that is unknown', {}, withMessage(new UserMessage([upload as never]))],
  [
    'UPP-125 a structure',
    { structuredOutput: false },
    (request) => ({ ...request, structure: { type: 'object' } }),
  ],
  ['UPP-112 two tools of one name', {}, (request) => ({ ...request, tools: [echo, { ...echo }] })],
]

function withMessage(message: UserMessage): Change {
  return (request) => ({ ...request, messages: [...request.messages, message] })
}

/** The hooks that may give another request for one inference. */
const hooks: [string, (change: Change) => Middleware][] = [
  ['onCycle', (change) => ({ name: 'change', onCycle: (request) => change(request) })],
  [
    'wrapInference',
    (change) => ({ name: 'change', wrapInference: (request, next) => next(change(request)) }),
  ],
]

describe.each(hooks)('%s', (_, hook) => {
  test.each(changes)('%s, given by the hook, are refused', async (_what, capabilities, change) => {
    const model = scripted(() => says('{}'), { capabilities })
    const codes: unknown[] = []
    const told: Middleware = {
      name: 'told',
      onError: (error) => void codes.push((error as { code?: string }).code),
    }
    const instance = llm({ model, middleware: [told, hook(change)] })
    const refused = { code: 'INVALID_REQUEST', provider: 'scripted', modality: 'llm' }
    await expect(instance.generate('x')).rejects.toMatchObject(refused)
    await expect(instance.stream('x').turn).rejects.toMatchObject(refused)
    const inference = instance.infer([new UserMessage('x')])
    await expect(inference.next()).rejects.toMatchObject(refused)
    expect(codes).toEqual(Array(3).fill('INVALID_REQUEST'))
    expect(model.requests).toEqual([])
  })

  test('UPP-167 the second inference is checked too, and the turn of the first is kept', async () => {
    const model = scripted([calls('echo'), says('no')], { capabilities: { imageInput: false } })
    const late: Change = (request) =>
      request.messages.length > 1 ? withMessage(picture)(request) : request
    const asking = llm({ model, tools: [echo], middleware: [hook(late)] }).generate('x')
    await expect(asking).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      turn: { cycles: 1, toolExecutions: [{ toolName: 'echo' }] },
    })
    expect(model.requests).toHaveLength(1)
  })

  test('UPP-096 what the model can do is sent as the hook gave it', async () => {
    const model = scripted([says('ok')])
    await llm({ model, middleware: [hook(withMessage(picture))] }).generate('x')
    expect(model.requests[0]?.messages.at(-1)).toEqual(picture)
  })
})
